"""What the node has and what of it is free: the providers' books and the record, put together."""
