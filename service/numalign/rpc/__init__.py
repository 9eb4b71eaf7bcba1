"""One way to build a server and a channel."""
