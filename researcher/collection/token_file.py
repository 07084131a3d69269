"""The file of one-time tokens: written before they are enrolled, so that none is lost."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from veiltab.common.collection.tokens import new_token, token_of
from veiltab.common.errors import ConflictError, InvalidInputError
from veiltab.common.storage.named_files import written_as_named


def kept_tokens(path: Path, round_id: str, numbers: Mapping[str, int]) -> dict[str, list[bytes]]:
    """Return the tokens of a file; make the file and new tokens if it does not exist.

    Args:
        path: a CSV file with the columns round, stratum and token.
        round_id: the round; tokens of another round are refused, because they would link a node's answers.

    Raises:
        ConflictError: the file exists and holds something else.
        InvalidInputError: it cannot be written.
    """
    if path.exists():
        return _read(path, round_id, numbers)
    tokens = {stratum: [new_token() for _ in range(number)] for stratum, number in numbers.items()}
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("round", "stratum", "token"))
    table.writerows((round_id, stratum, token.hex()) for stratum, batch in tokens.items() for token in batch)
    with written_as_named(path) as file:
        file.write(text.getvalue().encode())
    return tokens


def _read(path: Path, round_id: str, numbers: Mapping[str, int]) -> dict[str, list[bytes]]:
    tokens: dict[str, list[bytes]] = {stratum: [] for stratum in numbers}
    rounds = set()
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                rounds.add(row["round"])
                tokens[row["stratum"]].append(token_of(row["token"]))
    except (OSError, UnicodeDecodeError, csv.Error, KeyError, TypeError, InvalidInputError):
        rounds.clear()
    if rounds != {round_id} or {name: len(set(batch)) for name, batch in tokens.items()} != dict(numbers):
        raise ConflictError(
            "this file is there already and does not hold these tokens",
            where=str(path),
            remedy="Name a new file for new tokens.",
        )
    return tokens
