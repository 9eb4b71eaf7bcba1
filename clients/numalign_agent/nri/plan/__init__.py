"""What the runtime is to be told: pure functions over values."""
