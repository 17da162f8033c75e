"""The plumbing of every room: Arrow coder, stable ids, partitions by hash, maps over tables, Parquet in and out."""
