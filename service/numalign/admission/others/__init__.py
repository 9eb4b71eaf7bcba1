"""Admit handlers of others: what they are asked over gRPC, and what is made of their answers."""
