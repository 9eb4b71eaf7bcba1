"""The chain of admit handlers: their order, what each is shown, and how it is walked."""
