"""Frequency oracles: local randomisers of one value, and how a server counts what they report."""

from common.collection.oracles.krr import KaryRandomisedResponse
from common.collection.oracles.olh import OptimisedLocalHashing
from common.collection.oracles.oracle import Oracle
from common.collection.oracles.oue import OptimisedUnaryEncoding
from common.collection.oracles.registry import ORACLE_NAMES, oracle_for, oracle_of
from common.collection.oracles.reports import Bits, Category, Hashed, Report, Subset
from common.collection.oracles.ss import SubsetSelection

__all__ = [
    "ORACLE_NAMES",
    "Bits",
    "Category",
    "Hashed",
    "KaryRandomisedResponse",
    "OptimisedLocalHashing",
    "OptimisedUnaryEncoding",
    "Oracle",
    "Report",
    "Subset",
    "SubsetSelection",
    "oracle_for",
    "oracle_of",
]
