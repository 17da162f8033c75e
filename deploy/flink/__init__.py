"""A Flink cluster for semrank: on one machine, and in containers."""
