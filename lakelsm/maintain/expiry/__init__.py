"""Expiry of snapshots and of long-lived changelogs: which go, what they leave behind, and in which order."""
