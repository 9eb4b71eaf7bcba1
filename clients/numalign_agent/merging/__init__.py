"""Several sources become one stream of changes (MERGE)."""
