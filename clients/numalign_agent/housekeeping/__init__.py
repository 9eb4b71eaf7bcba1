"""The periodic clean-up: what the handlers and workers have missed (HSK)."""
