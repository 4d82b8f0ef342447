"""Conditions on rows: their form, the parser of SQL text, literals of each type, and what statistics say of them."""
