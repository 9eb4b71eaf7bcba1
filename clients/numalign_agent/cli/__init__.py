"""The `numalign-agent` command."""
