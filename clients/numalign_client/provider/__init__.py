"""What a hint provider of one's own is built from; `numalign_client.sdk` is its public face."""
