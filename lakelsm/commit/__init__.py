"""Publication: the optimistic commit, its conflict rules, and the one rule for deleting what was not published."""
