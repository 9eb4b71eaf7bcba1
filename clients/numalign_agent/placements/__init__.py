"""Keeping containers that run where Admission wants them."""
