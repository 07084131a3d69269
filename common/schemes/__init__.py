# Imported by curator, deploy, privacy, release, researcher; may import core, storage and what is below.
"""Sampling schemes: whether and how often a sample contains each respondent, and the pure epsilon of noise on it."""

from veiltab.common.core.sampling import Rows
from veiltab.common.schemes.registry import SCHEMES, check_certified, has_stage, scheme_class, scheme_of
from veiltab.common.schemes.scheme import Relation, Scheme, SizeLaw

__all__ = [
    "SCHEMES",
    "Relation",
    "Rows",
    "Scheme",
    "SizeLaw",
    "check_certified",
    "has_stage",
    "scheme_class",
    "scheme_of",
]
