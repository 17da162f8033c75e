"""What crawls and logs share: downloads, decompression, lines, JSON, Parquet, canonical URLs, dates, batches."""
