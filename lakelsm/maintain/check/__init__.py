"""The check of a whole table: references resolve, and the rules of the format hold. It reads, and changes nothing."""
