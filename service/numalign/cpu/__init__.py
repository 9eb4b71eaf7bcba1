"""Exclusive CPUs: who gets which."""
