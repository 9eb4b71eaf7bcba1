"""Generated code, package `k8s.io.kubelet.pkg.apis.dra.v1beta1` on the wire."""
