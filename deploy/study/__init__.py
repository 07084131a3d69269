# Imported by cli; may import registry and what is below.
"""Making a study file: drafts merged, parties named, mistakes shown."""
