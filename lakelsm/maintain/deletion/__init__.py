"""The files that no retained state needs, and their deletion."""
