"""The largest limits that a study may set."""

MAX_CELLS = 2**22
"""Largest number of cells that a study may allow a table."""

MAX_RESPONDENTS = 10**9
"""Largest number of respondents that a study may allow a table: its tokens take 16 GB of each other curator's disk."""

MAX_TABLES = 2000
"""Largest number of tables that a study may allow a release."""
