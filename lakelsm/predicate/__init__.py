"""Conditions and expressions on rows: their classes, the parser of SQL text, literals, evaluation, statistics."""
