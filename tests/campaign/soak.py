"""Many processes work on one table for a while."""
