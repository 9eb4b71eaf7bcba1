"""Generated messages and stubs of deviceplugin v1beta1."""
