"""Tables on Spark: everything that takes or gives a DataFrame. Beside `read/` and `write/`, only this room knows one."""
