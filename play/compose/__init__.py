# Imported by ; may import rehearsal and what is below.
"""Every party in a container of its own: what `docker compose` reads, for a ready study or a rehearsal."""
