"""The pods that sources want on this node, and what is done when they change."""
