"""Which files nothing retained needs, and their deletion."""
