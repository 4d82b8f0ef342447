"""What keeps a table in shape for years, and shows what is in it: on plans and commits of the rooms below."""
