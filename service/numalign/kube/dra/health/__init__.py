"""The health of the devices of DRA drivers."""
