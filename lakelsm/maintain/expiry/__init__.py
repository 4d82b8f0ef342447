"""Expiry of snapshots and long-lived changelogs: the choice, the files that become unneeded, and the deletion."""
