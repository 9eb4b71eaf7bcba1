"""Device plugins' resources: which devices a container gets."""
