"""The feed of a table's changes: offsets, limits, plans and the progress of consumers, without Spark."""
