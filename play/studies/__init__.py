# Imported by compose, demos, rehearsal; may import registers and what is below.
"""Ready study files, and the tables that go with them."""
