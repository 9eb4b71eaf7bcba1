"""The sync loop: everything that happens comes by here, one thing at a time (LOOP)."""
