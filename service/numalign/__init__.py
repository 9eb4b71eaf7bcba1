"""numalign: NUMA-aware pod admission for one Kubernetes node, as gRPC services.

The package holds the services; nothing is imported here, so that a process pays only for
the services it runs.
"""
