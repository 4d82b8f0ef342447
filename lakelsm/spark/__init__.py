"""Spark itself: the session, the mapping of types, and planned units as Spark tasks."""
