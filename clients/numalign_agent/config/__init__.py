"""The agent's configuration as one value, and how it is read from a document."""
