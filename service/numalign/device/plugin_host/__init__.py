"""The kubelet's side of the device plugin interface: real plugins behind the device provider."""
