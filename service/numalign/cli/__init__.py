"""The numalign command."""
