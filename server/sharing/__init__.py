# Imported by cli, party, records, release; imports no other room.
"""A state folder that several server processes use: leases, which PostgreSQL keeps, files of each holder, quotas."""
