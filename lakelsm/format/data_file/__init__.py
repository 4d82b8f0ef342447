"""Key-value files in Parquet: reading, writing, statistics, and checks against manifest entries."""
