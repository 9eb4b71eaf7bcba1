"""Serving an admit handler of one's own; `numalign_client.sdk` is the way in."""
