"""BinaryRow, the bytes of keys and partitions, and hashes of these bytes."""
