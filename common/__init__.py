"""What every party shares: the domain, the mechanism, the sampling, the planning, the wire and the identities."""
