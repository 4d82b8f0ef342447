"""SQL on tables of a catalog: statements, and their execution on both engines."""
