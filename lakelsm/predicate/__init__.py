"""Conditions and expressions of a row: their form, the parser of SQL text, literals, evaluation, and statistics."""
