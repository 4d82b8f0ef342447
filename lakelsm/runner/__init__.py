"""The one thing that runs planned units: its protocol, and the runner of this process."""
