"""The agent-facing Admission service."""
