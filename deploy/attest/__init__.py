"""A release certificate as others read it: a registry, an archive, an evaluator, a verifier of envelopes."""
