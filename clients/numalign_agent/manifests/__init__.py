"""From the text of manifests to the pods that they mean on this node (CFG-8, CFG-9)."""
