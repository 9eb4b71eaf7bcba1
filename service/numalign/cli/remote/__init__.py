"""Reaching the services of another node of the cluster, through its numalign pod."""
