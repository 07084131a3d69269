"""A curator: it holds some columns, draws the shared secret sample, encrypts, and keeps the ledger and the keys."""
