"""The values and tokens of a fleet's nodes, read from files or spread by a distribution."""

import csv
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import numpy as np

from veiltab.common.collection.population import parse_population
from veiltab.common.collection.round import EVERYONE, Round
from veiltab.common.collection.tokens import token_of
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError, NotFoundError, VeiltabError
from veiltab.common.study.file import Study
from veiltab.node.answers.decision import symbol_of


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeValue:
    """One node of a fleet.

    Args:
        node: its number: the line of its file, or its position in the distribution.
    """

    node: int
    stratum: str
    symbol: int
    token: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A row without a usable value, and why; never the value itself."""

    line: int
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Nodes with their values and tokens.

    Args:
        digest: SHA-256 of where they came from.
    """

    nodes: tuple[NodeValue, ...]
    bad_rows: tuple[BadRow, ...]
    digest: bytes


def read_tokens(path: Path) -> dict[str, list[bytes]]:
    """Return the tokens of each stratum, in the order of the file that `veiltab collect enrol` wrote.

    Blank lines are skipped.

    Raises:
        InvalidInputError: a line without a token, or with the token of another line: two nodes cannot share one.
    """
    tokens: defaultdict[str, list[bytes]] = defaultdict(list)
    earlier: set[bytes] = set()
    for line, row in _rows(path, ("stratum", "token")):
        if not any(row.values()):
            continue
        token = token_of(row["token"], f"{path}, line {line}")
        if token in earlier:
            raise InvalidInputError("this token stands in an earlier line too", where=f"{path}, line {line}")
        earlier.add(token)
        tokens[row["stratum"]].append(token)
    return tokens


def fleet_from_file(spec: Round, study: Study, values: Path, tokens: Path) -> Fleet:
    """Read a fleet: a CSV file with a column `value` and, if the round has strata, `stratum`; one line a node.

    The first node of a stratum has the stratum's first token, and so on. A blank line is a node without a value.

    Raises:
        InvalidInputError: a stratum has more nodes than tokens.
    """
    without: Counter[str] = Counter()
    tokens_left = {stratum: iter(batch) for stratum, batch in read_tokens(tokens).items()}
    nodes, bad = [], []
    needed = ("value",) if _single(spec) else ("value", "stratum")
    for line, row in _rows(values, needed):
        stratum = (row.get("stratum") or EVERYONE).strip() if not _single(spec) else EVERYONE
        token = next(tokens_left.get(stratum, iter(())), None)
        try:
            if not any(row.values()):
                raise InvalidInputError("the line is blank: a node's value is missing")
            spec.stratum(stratum)
            if token is None:
                without[stratum] += 1
                continue
            symbol = symbol_of(study, spec.question, row["value"])
        except VeiltabError as error:
            bad.append(BadRow(line=line, problem=error.problem))
        else:
            nodes.append(NodeValue(node=line, stratum=stratum, symbol=symbol, token=token))
    if without:
        counts = ", ".join(f"{number:,} of stratum {stratum}" for stratum, number in without.items())
        raise InvalidInputError(
            f"the values are of more nodes than there are tokens: {counts} have none",
            where=str(tokens),
            remedy="Enrol more nodes with `veiltab collect enrol`, or leave values out. No report was sent.",
        )
    return Fleet(nodes=tuple(nodes), bad_rows=tuple(bad), digest=_digest(values, tokens))


def fleet_from_distribution(spec: Round, distribution: str, tokens: Path) -> Fleet:
    """Spread a distribution over the nodes that have tokens, the same in every stratum, rounded to whole nodes.

    Its values 1..d are the question's categories in order, whatever their names.
    """
    population = parse_population(distribution)
    nodes: list[NodeValue] = []
    for stratum, batch in read_tokens(tokens).items():
        spec.stratum(stratum)
        counts = population.counts(len(batch), spec.size)
        symbols = np.repeat(np.arange(spec.size), counts)
        nodes += [
            NodeValue(node=len(nodes) + place, stratum=stratum, symbol=int(symbol), token=token)
            for place, (symbol, token) in enumerate(zip(symbols, batch, strict=True), 1)
        ]
    digest = hashlib.sha256(distribution.encode() + _digest(tokens)).digest()
    return Fleet(nodes=tuple(nodes), bad_rows=(), digest=digest)


def _single(spec: Round) -> bool:
    return [stratum.name for stratum in spec.strata] == [EVERYONE]


def _digest(*paths: Path) -> bytes:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the lines of a CSV file that must have some columns; blank lines too, which csv.DictReader would drop."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            missing = [column for column in columns if column not in header]
            if missing:
                raise InvalidInputError(
                    f"there is no column {missing[0]}", where=str(path), remedy=f"Begin it with: {','.join(columns)}."
                )
            for row in reader:
                yield reader.line_num, dict(zip_longest(header, row[: len(header)], fillvalue=""))
    except FileNotFoundError:
        raise NotFoundError("this file is not there", where=str(path), remedy="Name a CSV file.") from None
    except (OSError, UnicodeDecodeError, csv.Error):
        raise InvalidInputError("this is not a readable CSV file in UTF-8", where=str(path)) from None
