"""The questions of a desk to curators and server, and when it asks again."""
