"""A device plugin whose devices are files in a directory: a start for one of your own.

It speaks the device plugin interface v1beta1 and knows nothing of numalign, so a kubelet takes
it as well. See README.md.
"""
