"""A curator: holds some columns, draws the shared secret sample, encrypts, keeps the ledger and the keys."""
