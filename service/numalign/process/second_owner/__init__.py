"""Noticing that somebody else hands out the CPUs or the memory of this node as well."""
