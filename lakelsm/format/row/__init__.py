"""BinaryRow, the bytes of keys and partitions, and the hashes of them."""
