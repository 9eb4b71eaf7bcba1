"""Taking over what a kubelet has on this node, from its state files."""
