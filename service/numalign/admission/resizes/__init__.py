"""Pending resizes: which come first, and what an evaluation of them changes."""
