"""The node's shutdown as systemd-logind announces it, and a delay of it while pods end."""
