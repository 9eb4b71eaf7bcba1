"""Resizes that are wanted and not granted yet (RES)."""
