"""Generated messages of the device plugin interface."""
