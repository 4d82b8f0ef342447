"""The merge kernel: merges sorted Arrow runs into Arrow rows. Each merge rule is implemented once."""
