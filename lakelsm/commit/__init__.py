"""Publication: the optimistic commit, its conflict rules, and the rule that deletes unpublished files."""
