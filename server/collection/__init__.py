"""Rounds of collection at the server: tokens spent at most once, reports counted, nothing that joins the two."""
