"""Ending pods when the node shuts down, group by group."""
