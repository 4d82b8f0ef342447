"""Files of a table that nothing retained names: found, and removed."""
