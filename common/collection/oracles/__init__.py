"""Frequency oracles: local randomisers of one value, and how a server counts their reports."""

from veiltab.common.collection.oracles.krr import KaryRandomisedResponse
from veiltab.common.collection.oracles.olh import OptimisedLocalHashing
from veiltab.common.collection.oracles.oracle import Oracle
from veiltab.common.collection.oracles.oracle_registry import ORACLE_NAMES, oracle_for, oracle_of
from veiltab.common.collection.oracles.oue import OptimisedUnaryEncoding
from veiltab.common.collection.oracles.reports import Bits, Category, Hashed, Report, Subset
from veiltab.common.collection.oracles.ss import SubsetSelection

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
