"""Merging described lists of hints, whose masks are too many to list; see docs/merge.md."""
