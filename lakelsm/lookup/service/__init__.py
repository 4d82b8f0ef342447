"""The query service: servers that answer lookups of a table by Arrow Flight, and the cache that calls them."""
