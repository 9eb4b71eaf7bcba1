"""Unit recordings against the deciding functions: they have no RPC.

A runner takes a record and answers in the recording's own spelling.
"""
