"""ttrpc over the multiplexed socket of the Node Resource Interface, both ways at once."""
