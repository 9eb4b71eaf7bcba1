"""Observer mode: a kubelet on this node owns the devices; pods hold them before we are asked."""
