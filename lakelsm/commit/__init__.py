"""Reading and publishing snapshots: scan, optimistic commit, conflict rules."""
