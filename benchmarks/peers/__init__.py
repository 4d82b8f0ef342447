"""One module a peer engine. Each runs in an environment of its own and imports only that peer."""
