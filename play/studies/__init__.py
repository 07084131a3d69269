"""Ready study files, and the tables that go with them."""
