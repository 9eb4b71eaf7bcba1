"""The kubelet's pod resources interface, answered from what numalign admitted."""
