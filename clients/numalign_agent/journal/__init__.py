"""What was decided and done on this node, on disk: read after a restart, and by people."""
