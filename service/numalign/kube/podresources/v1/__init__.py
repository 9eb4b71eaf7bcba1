"""Generated code of the present version, package `v1` on the wire."""
