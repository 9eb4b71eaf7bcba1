"""DRA claims: what a kubelet's DRA manager does, as the sixth service."""
