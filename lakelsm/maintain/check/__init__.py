"""The check of a whole table: all references resolve and all rules of the format hold. It changes nothing."""
