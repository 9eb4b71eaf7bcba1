"""`numalign replay`: recorded decisions against the real services, and every difference.

Nothing else imports this package. It speaks to the services through their RPCs alone; what
is compared, and what a recording leaves open, is decided by pure modules.
"""
