"""The query service: servers that answer lookups of a table over Arrow Flight, and the cache that calls them."""
