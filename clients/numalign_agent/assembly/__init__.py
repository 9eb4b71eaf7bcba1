"""Putting the parts of an agent together and letting them run."""
