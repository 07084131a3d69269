# Imported by deploy, officer, release; may import budget and what is below.
"""A curator's checks of a request, its plan and its price."""
