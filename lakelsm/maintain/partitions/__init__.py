"""Partitions as a whole: listed, dropped, expired by age, and marked as done."""
