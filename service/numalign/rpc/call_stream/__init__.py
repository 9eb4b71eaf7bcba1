"""Unary calls over one open stream: the caller's side, the server's, and what travels between.

To begin a call costs gRPC for Python about as much as all that an admission does in one
service. A channel with a stream behaves as one without: the same stubs, statuses, deadlines,
metadata and cancellation.
"""
