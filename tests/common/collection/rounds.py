"""A study of nodes, and rounds of it, for tests of any party."""

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from veiltab.common.collection.oracles import Bits, Category, Hashed, Oracle, Report, Subset, oracle_for
from veiltab.common.collection.round import Round, Stratum
from veiltab.common.core.randomness import CipherStream
from veiltab.common.study.file import Study, study_from_bytes

STUDY = b"""
[study]
id = "poll"
title = "A poll"
[server]
name = "cloud"
endpoint = "localhost:7400"
[[researcher]]
name = "rosa"
endpoint = "localhost:7410"
[[researcher]]
name = "rita"
endpoint = "localhost:7411"
[nodes]
name = "fleet"
budget_epsilon = 4
shares = { rosa = 4 }
strata = ["north", "south"]
[[question]]
name = "value"
integers = [1, 20]
[[question]]
name = "pet"
categories = ["cat", "dog", "none"]
recode = { tom = "cat" }
"""
"""Nodes in two strata."""

PLAIN = STUDY.replace(b'strata = ["north", "south"]\n', b"")
"""The same without strata."""

ID = "0" * 31 + "1"
OTHER_ID = "0" * 31 + "2"
FUTURE = 4_000_000_000
NORTH = Stratum(name="north", population=10, rate=Decimal("0.5"))
SOUTH = Stratum(name="south", population=20, rate=Decimal(1))
EVERYBODY = Stratum(name="everyone", population=30, rate=Decimal(1))


def study(text: bytes = STUDY) -> Study:
    return study_from_bytes(text, "study.toml")


def round_with(randomiser: Oracle | str = "krr", **changes: Any) -> Round:  # noqa: ANN401 - any field of a round
    """Return a round in two strata, which costs epsilon 1 unless the changes say otherwise."""
    epsilon, size = changes.get("epsilon", Decimal(1)), changes.get("size", 20)
    oracle = oracle_for(randomiser, size, epsilon) if isinstance(randomiser, str) else randomiser
    fields: dict[str, Any] = {
        "round_id": ID,
        "study_digest": study().digest,
        "researcher": "rosa",
        "question": "value",
        "size": size,
        "epsilon": epsilon,
        "oracle": oracle.name,
        "parameters": tuple(sorted(oracle.parameters.items())),
        "strata": (NORTH, SOUTH),
        "deadline": FUTURE,
    }
    return Round(**(fields | changes))


def plain_round(**changes: Any) -> Round:  # noqa: ANN401 - any field of a round
    """Return a round of the study without strata."""
    return round_with(**({"study_digest": study(PLAIN).digest, "strata": (EVERYBODY,)} | changes))


def reports_from(oracle: Oracle, values: Iterable[int], seed: int = 1) -> list[Report]:
    """Return the reports of nodes that hold some values, each drawn from a stream of its own."""
    keys = (bytes([seed]) + place.to_bytes(31) for place in range(2**31))
    return [oracle.randomise(int(value), CipherStream(key)) for value, key in zip(values, keys, strict=False)]


def support_of(oracle: Oracle, report: Report) -> NDArray[np.int64]:
    """Return the values that a report supports."""
    counts = np.zeros(oracle.size, np.int64)
    oracle.aggregate([oracle.check(report)], counts)
    return np.repeat(np.arange(oracle.size), counts)


def report_to_json(token: bytes, stratum: str, report: Report) -> bytes:
    """Return the body of a report; its length depends on the round alone."""
    payload: dict[str, object]
    match report:
        case Category():
            payload = {"category": report.symbol.to_bytes(4).hex()}
        case Bits():
            payload = {"bits": report.bits.hex()}
        case Hashed():
            payload = {"seed": report.seed.hex(), "symbol": report.symbol.to_bytes(4).hex()}
        case Subset():
            payload = {"subset": report.values.hex()}
        case _:
            assert_never(report)
    return json.dumps({"token": token.hex(), "stratum": stratum, "report": payload}).encode()


BAD_PAYLOADS: dict[str, dict[str, Report]] = {
    "krr": {"a category too many": Category(symbol=20), "no category by far": Category(symbol=2**32 - 1)},
    "oue": {
        "too short": Bits(bits=bytes(2)),
        "too long": Bits(bits=bytes(4)),
        "empty": Bits(bits=b""),
        "a bit beyond the values": Bits(bits=bytes([0, 0, 1 << 4])),
    },
    "olh": {
        "a short seed": Hashed(seed=bytes(7), symbol=0),
        "a long seed": Hashed(seed=bytes(9), symbol=0),
        "no seed": Hashed(seed=b"", symbol=0),
        "a symbol too large": Hashed(seed=bytes(8), symbol=4),
    },
    "ss": {
        "too few": Subset(values=bytes([1, 2, 3, 4])),
        "too many": Subset(values=bytes([1, 2, 3, 4, 5, 6])),
        "empty": Subset(values=b""),
        "not increasing": Subset(values=bytes([1, 2, 3, 5, 4])),
        "one twice": Subset(values=bytes([1, 2, 3, 4, 4])),
        "a value too large": Subset(values=bytes([1, 2, 3, 4, 20])),
    },
}
"""Oracle -> what it is -> a report over 20 values that no node of a round at epsilon 1 could have sent."""

GOOD_PAYLOADS: dict[str, Report] = {
    "krr": Category(symbol=7),
    "oue": Bits(bits=bytes([0x81, 0, 1])),
    "olh": Hashed(seed=bytes(8), symbol=1),
    "ss": Subset(values=bytes([0, 1, 2, 3, 19])),
}
"""Oracle -> a report that a node could have sent."""
