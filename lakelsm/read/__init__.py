"""Tasks of reads that both engines run: stored and merged rows, changelogs, hidden rows, counts and column statistics."""
