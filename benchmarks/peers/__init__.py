"""One module for each peer engine. Each runs in a separate environment and imports only that peer."""
