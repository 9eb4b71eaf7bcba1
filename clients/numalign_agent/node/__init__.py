"""What the cluster is told about this node's numalign: the start-up taint, and its topology.

Separate from `api.own_node`, which keeps the Node object of a node that has no kubelet: here the
Node is somebody else's, and nothing of it is touched but one taint.
"""
