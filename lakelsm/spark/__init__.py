"""What lakelsm needs of Spark itself: the session, the type mapping, and planned units as tasks."""
