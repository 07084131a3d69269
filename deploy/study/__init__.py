"""Making a study file: drafts merged, parties named, mistakes shown."""
