"""The certificate of a release: its statements, its file, its check."""
