"""A table's state as it is stored: schemas, snapshots, manifests as scans see them. Nothing here publishes a snapshot."""
