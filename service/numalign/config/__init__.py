"""The configuration: a KubeletConfiguration file with a `numalign` section, as one value."""
