"""Index files and the index manifest that names them."""
