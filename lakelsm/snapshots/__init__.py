"""The stored state of a table: schemas, snapshots, tags, branches, consumers, manifests. Publishes no snapshot."""
