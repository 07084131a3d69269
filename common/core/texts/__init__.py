"""Texts that are the same everywhere: canonical JSON, spellings, ids, fields of messages."""
