"""The contract, generated from protos/numalign/v1 by `make protos`."""
