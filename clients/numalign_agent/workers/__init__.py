"""One worker for each pod: it drives the pod from its first container to its last (WRK)."""
