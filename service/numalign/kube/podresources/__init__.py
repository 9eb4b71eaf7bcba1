"""The kubelet's pod resources interface, as its readers speak it."""
