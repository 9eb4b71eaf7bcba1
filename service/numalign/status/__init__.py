"""What a failed call says besides its code, as messages."""
