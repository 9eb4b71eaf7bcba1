"""Generated code, package `v1alpha1` on the wire."""
