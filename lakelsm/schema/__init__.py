"""The schema of a table: columns, keys and options, their changes, and the rules that check them."""
