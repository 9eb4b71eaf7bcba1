"""Runners of the admission recordings against the admit handlers."""
