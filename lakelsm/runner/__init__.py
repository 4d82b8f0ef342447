"""Runners of planned units: their protocol, and the runner of this process."""
