"""Generated code of the one version, package `nri.pkg.api.v1alpha1` on the wire."""
