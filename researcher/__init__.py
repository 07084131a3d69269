"""A researcher: requests releases, fetches and decrypts them, estimates and reports."""
