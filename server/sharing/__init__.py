# Imported by cli, party, records, release; imports no other room.
"""A state folder that several server processes use: leases, files of each holder, quotas."""
