"""The parser of text in Spark's dialect: statements, and the tables that a query names."""
