"""The machine and the configuration that numalign runs under."""
