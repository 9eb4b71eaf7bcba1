"""Generated from protos/numalign/status/v1."""
