"""Drafts of a study, merged; the template of a study file."""
