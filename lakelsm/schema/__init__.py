"""A table's description: columns, keys and options, how they change, and the rules that judge them."""
