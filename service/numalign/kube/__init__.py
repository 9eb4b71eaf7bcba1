"""Kubernetes' own shapes: the pod message, its JSON, and the pods in manifests."""
