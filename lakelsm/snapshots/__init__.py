"""The stored state of a table: schemas, snapshots, manifests as scans read them. Nothing here publishes a snapshot."""
