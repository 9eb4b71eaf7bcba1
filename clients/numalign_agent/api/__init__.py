"""Everything that is said to an API server: lists and watches, statuses, mirror pods, the node."""
