"""A node at one moment: how it is asked for, kept in a file, and read again."""
