"""The admit handlers: one file per handler, each a pure function over values.

What a handler must know comes as arguments: the pod, the other pods, the node, the facts of
the host. Who reads those, and in which order handlers are asked, stands elsewhere.
"""
