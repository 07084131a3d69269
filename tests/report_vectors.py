"""Test vectors of reports for clients in any language; `python -m tests.report_vectors` writes them.

docs/report-protocol.md says what each field means. Every report is drawn by the product from bytes that the file
names, in the order in which they are consumed, so that another client must come to the same message.
"""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from tests.common.collection.rounds import BAD_PAYLOADS, report_to_json, round_with
from veiltab.common.collection.oracles import Oracle, oracle_for, oracle_of
from veiltab.common.collection.oracles.olh import hashes
from veiltab.common.collection.round import Round, RoundState, Stratum
from veiltab.common.collection.round_messages import report_to_proto
from veiltab.common.core.domain import symbol_dtype
from veiltab.common.core.mechanism import UNIT
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.symbols import fill_uniform
from veiltab.node.answers.decision import COIN, decide
from veiltab.server.https.json_messages import round_to_json

PATH = Path(__file__).parent / "vectors" / "reports.json"
TOKEN = bytes(range(16))
HALF, ALL = (
    Stratum(name="half", population=10, rate=Decimal("0.3")),
    Stratum(name="all", population=20, rate=Decimal(1)),
)

Forced = Mapping[int, bytes]
"""Label -> the first bytes that are drawn under it."""

SIZES: dict[str, tuple[tuple[int, str], ...]] = {
    "krr": ((2, "1"), (3, "0.1"), (20, "1"), (64, "2"), (256, "4"), (257, "3"), (40_000, "5"), (65_536, "9")),
    "oue": ((2, "1"), (8, "0.5"), (9, "2"), (20, "1")),
    "olh": ((2, "1"), (20, "1"), (300, "3"), (5000, "6")),
    "ss": ((2, "1"), (3, "1"), (20, "1"), (20, "4"), (257, "0.5"), (1000, "2")),
}
"""Oracle -> (categories, epsilon)."""


class Recorded:
    """A cipher stream that notes what it gave, and gives some bytes by order."""

    def __init__(self, number: int, forced: Forced) -> None:
        self.given = b""
        self._stream, self._forced = CipherStream(number.to_bytes(32)), forced

    def fill(self, out: memoryview, *, label: int, chunk: int) -> None:
        self._stream.fill(out, label=label, chunk=chunk)
        forced = self._forced.get(label, b"")
        out[: len(forced)] = forced
        self.given += bytes(out)


def word(units: int) -> bytes:
    """Return 64 bits as they are drawn."""
    return units.to_bytes(8, "little")


def spec_of(oracle: Oracle, **changes: Any) -> Round:  # noqa: ANN401 - any field of a round
    """Return a round in two strata, one of which is asked with probability 0.3."""
    fields: dict[str, Any] = {"size": oracle.size, "epsilon": oracle.epsilon, "strata": (HALF, ALL)}
    return round_with(oracle, **(fields | changes))


def described(spec: Round) -> dict[str, Any]:
    """Return what a node gets to know of a round."""
    facts: dict[str, Any] = json.loads(round_to_json(spec, RoundState.OPEN))
    return facts


def report(name: str, spec: Round, number: int, forced: Forced = {}, stratum: Stratum = ALL) -> dict[str, Any]:  # noqa: B006 - it is not changed
    """Return one vector: a round, a value, the bytes drawn, and the messages that follow from them."""
    category = number * 7 % spec.size
    source = Recorded(number, forced)
    drawn = decide(spec, stratum, category, source)
    return {
        "name": name,
        "answer": described(spec),
        "stratum": stratum.name,
        "category": category,
        "token": TOKEN.hex(),
        "random": source.given.hex(),
        "body": drawn and report_to_json(TOKEN, stratum.name, drawn).decode(),
        "grpc": drawn and report_to_proto(spec.round_id, TOKEN, stratum.name, drawn).SerializeToString().hex(),
    }


def edges(units: int) -> Iterator[tuple[str, int]]:
    """Yield the words next to a threshold, and the ends."""
    near = {"0": 0, "threshold - 1": units - 1, "threshold": units, "threshold + 1": units + 1, "2^64 - 1": UNIT - 1}
    yield from ((name, one) for name, one in near.items() if 0 <= one < UNIT)


def reports() -> Iterator[dict[str, Any]]:
    """Yield the reports: some of every oracle and size, then what decides at its threshold, then rejected words."""
    for oracle, sizes in SIZES.items():
        for size, epsilon in sizes:
            spec = spec_of(oracle_for(oracle, size, Decimal(epsilon)))
            for number in (1, 2, 3):
                yield report(f"{oracle}, {size} values, epsilon {epsilon}, number {number}", spec, number)
    krr = spec_of(oracle_for("krr", 20, Decimal(1)))
    for name, drawn in edges(HALF.coin):
        yield report(f"coin at {name}", krr, 4, {COIN: word(drawn)}, HALF)
    at = {"krr": ("replacement", 0), "olh": ("replacement", 0), "oue": ("q64", 0), "ss": ("p64", 0)}
    for oracle, (parameter, label) in at.items():
        spec = spec_of(oracle_for(oracle, 20, Decimal(1)))
        units = dict(spec.parameters)[parameter]
        for name, drawn in edges(units):
            yield report(f"{oracle}, {parameter} at {name}", spec, 5, {label: word(drawn)})
    oue = spec_of(oracle_for("oue", 20, Decimal(1)))
    for name, drawn in edges(UNIT // 2):
        yield report(f"oue, own bit at {name}", oue, 5, {1: word(drawn)})
    replaced = {0: word(0)}
    for name, noise in {"65519, the last that is taken": 65_519, "65520, rejected": 65_520}.items():
        yield report(f"krr, noise of {name}", krr, 6, replaced | {1: noise.to_bytes(2, "little")})
    rejected = {1 + turn * 2**24: b"\xff\xff" for turn in range(3)}
    yield report("krr, three words rejected", krr, 6, replaced | rejected)
    ss = spec_of(oracle_of("ss", 20, {"w": 5, "p64": 2**63}))
    yield report("ss, a batch of repeats, drawn anew", ss, 6, {1: bytes(40)})
    yield report("ss, two words of a batch rejected", ss, 6, {1: b"\xff\x00\xff\x10\x20"})


def refused_reports() -> Iterator[dict[str, Any]]:
    """Yield bodies that no node of a round could have sent: of a server's kind or of a twin with one thing wrong."""
    for oracle, payloads in BAD_PAYLOADS.items():
        spec = spec_of(oracle_for(oracle, 20, Decimal(1)))
        for name, payload in payloads.items():
            body = report_to_json(TOKEN, "all", payload).decode()
            yield {"name": f"{oracle}, {name}", "answer": described(spec), "body": body}
        others = [one for kind in BAD_PAYLOADS if kind != oracle for one in reports_of(kind)[:1]]
        for other in others:
            yield {"name": f"{oracle}, {other['name']}", "answer": described(spec), "body": other["body"]}
    krr = spec_of(oracle_for("krr", 20, Decimal(1)))
    good = report_to_json(TOKEN, "all", decide(krr, ALL, 7, CipherStream(bytes(32))) or _never()).decode()
    digits = good[-11:-3]
    for name, body in {
        "capital digits": good.replace(digits, "0000000A"),
        "too few digits": good.replace(digits, "07"),
        "a number": good.replace(f'"{digits}"', "7"),
        "a field too many": good[:-1] + ', "x": 1}',
        "a field too few": good.replace('"stratum": "all", ', ""),
        "a short token": good.replace(TOKEN.hex(), TOKEN.hex()[2:]),
        "no JSON": good[:-1],
    }.items():
        yield {"name": f"krr, {name}", "answer": described(krr), "body": body}


def reports_of(oracle: str) -> list[dict[str, Any]]:
    return [report(f"a report of {oracle}", spec_of(oracle_for(oracle, 20, Decimal(1))), 1)]


def _never() -> Any:  # noqa: ANN401 - it raises
    raise AssertionError("the stratum is asked with probability 1")


def refused_rounds() -> Iterator[dict[str, Any]]:
    """Yield rounds that a node must not answer: each differs in one thing from one that it answers."""
    krr, ss = (described(spec_of(oracle_for(name, 20, Decimal(1)))) for name in ("krr", "ss"))
    few = str(ss["round"]["parameters"]["w"])
    changes: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "id too short": (krr, {"round_id": "0" * 31}),
        "study digest in capitals": (krr, {"study_digest": "A" * 64}),
        "one category": (krr, {"size": 1}),
        "too many categories": (krr, {"size": 65_537}),
        "unknown oracle": (krr, {"oracle": "rappor"}),
        "parameters of another oracle": (krr, {"parameters": ss["round"]["parameters"]}),
        "a parameter too many": (krr, {"parameters": krr["round"]["parameters"] | {"g": "2"}}),
        "no noise": (krr, {"parameters": {"replacement": "0"}}),
        "replacement of 2^64": (krr, {"parameters": {"replacement": str(UNIT)}}),
        "less noise": (
            krr,
            {"parameters": {"replacement": str(int(krr["round"]["parameters"]["replacement"]) - 2**32)}},
        ),
        "subset of more than half": (ss, {"parameters": ss["round"]["parameters"] | {"w": "11"}}),
        "empty subset": (ss, {"parameters": ss["round"]["parameters"] | {"w": "0"}}),
        "own value rarer than others": (ss, {"parameters": {"w": few, "p64": str(int(few) * UNIT // 20)}}),
        "epsilon not a number": (krr, {"epsilon": "NaN"}),
        "epsilon of nothing": (krr, {"epsilon": "0"}),
        "epsilon too large": (krr, {"epsilon": "100.1"}),
        "rate of nothing": (krr, {"strata": [strata(rate="0")]}),
        "rate above 1": (krr, {"strata": [strata(rate="1.000000000000000001")]}),
        "rate too small": (krr, {"strata": [strata(rate="9E-19")]}),
        "no stratum": (krr, {"strata": []}),
        "a stratum twice": (krr, {"strata": [strata(), strata()]}),
        "nobody in the stratum": (krr, {"strata": [strata(population=0)]}),
        "deadline before 1970": (krr, {"deadline": -1}),
    }
    for name, (answer, changed) in changes.items():
        yield {"name": name, "answer": {"state": "open", "round": answer["round"] | changed}}
    for oracle, sizes in SIZES.items():
        for size, epsilon in sizes:
            made = oracle_for(oracle, size, Decimal(epsilon))
            answer = described(spec_of(made))
            lower = str(made.epsilon - Decimal("1e-12"))
            changed = {"state": "open", "round": answer["round"] | {"epsilon": lower}}
            yield {"name": f"{oracle}, {size} values: costs 1e-12 more than it says", "answer": changed}


def strata(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - any field of a stratum
    """Return a stratum of a round's description."""
    return {"name": "all", "population": 20, "rate": "1"} | changes


def uniform() -> Iterator[dict[str, Any]]:
    """Yield uniform symbols of alphabets whose words have 8, 16 and 32 bits, with the bytes drawn."""
    for number, size in enumerate((2, 3, 5, 64, 100, 255, 256, 257, 1000, 40_000, 65_535, 65_536)):
        source = Recorded(number, {0: b"\xff" * 8})
        symbols = np.empty(8, symbol_dtype(size))
        fill_uniform(symbols, size, source, label=0, chunk=0)
        yield {"size": size, "random": source.given.hex(), "symbols": symbols.tolist()}


def hashed() -> Iterator[dict[str, Any]]:
    """Yield hash functions of local hashing."""
    for number, (size, g) in enumerate(((2, 2), (20, 4), (300, 21), (1000, 60), (600, 300), (100, 40_000))):
        seed = bytes([number]) * 8
        yield {"seed": seed.hex(), "size": size, "g": g, "symbols": hashes([seed], size, g)[0].tolist()}


def vectors() -> str:
    """Return the file: one vector a line."""
    parts = {
        "reports": reports(),
        "refused_reports": refused_reports(),
        "refused_rounds": refused_rounds(),
        "uniform": uniform(),
        "hashes": hashed(),
    }
    listed = {name: ",\n".join(json.dumps(one) for one in part) for name, part in parts.items()}
    return "{\n" + ",\n".join(f'"{name}": [\n{lines}\n]' for name, lines in listed.items()) + "\n}\n"


if __name__ == "__main__":
    PATH.write_text(vectors(), "utf-8")
