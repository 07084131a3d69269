"""Code that every party shares: the domain, the mechanism, sampling, planning, messages and identities."""
