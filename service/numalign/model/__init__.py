"""Plain values that every other package speaks in: no I/O, no clock, no logging."""
