"""A state folder that several server processes use: leases, files of each holder, quotas."""
