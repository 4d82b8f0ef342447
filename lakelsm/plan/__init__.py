"""Plans from metadata alone: what a read, a write, a changelog or a compaction looks at. No Spark, clock or chance."""
