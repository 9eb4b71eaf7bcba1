"""Static pods out of a directory of manifests, or out of one file (CFG-2 to CFG-8)."""
