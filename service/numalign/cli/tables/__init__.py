"""What people read: tables and drawings of messages, as pure functions."""
