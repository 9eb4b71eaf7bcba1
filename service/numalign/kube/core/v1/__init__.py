"""Generated messages of core/v1."""
