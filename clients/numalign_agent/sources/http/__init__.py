"""Static pods from a URL (CFG-10 to CFG-13)."""
