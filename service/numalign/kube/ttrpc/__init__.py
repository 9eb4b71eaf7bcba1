"""ttrpc, which containerd speaks with its plugins."""
