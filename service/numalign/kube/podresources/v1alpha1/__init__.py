"""Generated code of the first version, package `v1alpha1` on the wire."""
