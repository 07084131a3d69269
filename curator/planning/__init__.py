"""A curator's checks of a request, its plan and its price."""
