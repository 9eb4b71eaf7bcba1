"""Plugins of any type that put a socket into a watched directory."""
