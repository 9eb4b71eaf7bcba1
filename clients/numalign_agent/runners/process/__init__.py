"""Containers as processes of this node: each is a child of a small process that outlives us."""
