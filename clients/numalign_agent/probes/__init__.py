"""Asking containers whether they have started, are ready, are alive."""
