"""Putting services together and running them: one process for all, or one for each."""
