"""What all hint providers share: the engine protocol, the two-phase ledger, the servicer."""
