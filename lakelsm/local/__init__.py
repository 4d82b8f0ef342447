"""Execution in this process: Arrow in and out, without a JVM."""
