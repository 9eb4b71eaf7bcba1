"""Control groups: what is written into them, read back from them, and kept as it should be."""
