"""What the commands of `veiltab lab privacy` read: releases, values, numbers."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np

from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.description import ReleaseDescription, description_of


def read_releases(path: Path) -> list[tuple[ReleaseDescription, int]]:
    """Return the releases that a file lists, and how often each."""
    try:
        listed = json.loads(path.read_text("utf-8"), parse_float=str)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidInputError("the file cannot be read as JSON", where=str(path)) from error
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise InvalidInputError("the file must hold a list of releases", where=str(path))
    releases = []
    samples: set[str] = set()
    for number, entry in enumerate(listed, start=1):
        where = f"{path}, release {number}"
        count = entry.get("count", 1)
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise InvalidInputError("count must be a whole number from 1", where=where)
        sample_id = entry.get("sample_id")
        if sample_id is not None and (count > 1 or str(sample_id) in samples):
            raise InvalidInputError(
                "one sample never serves two releases: their gammas multiply, and nothing amplifies", where=where
            )
        samples.add(str(sample_id))
        releases.append((description_of(entry, where), count))
    return releases


def read_values(path: Path | None) -> Floats:
    """Return the numbers of a file, one a line."""
    if path is None:
        raise InvalidInputError("the median needs a file of values", where="--values")
    try:
        values = np.array([float(line) for line in path.read_text("utf-8").split()])
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InvalidInputError("the file must hold one number a line", where=str(path)) from error
    if not len(values) or not np.isfinite(values).all():
        raise InvalidInputError("the file holds no finite numbers", where=str(path))
    return values


def required(value: float | None, option: str) -> float:
    """Refuse a missing option."""
    if value is None:
        raise InvalidInputError("this option is needed here", where=option)
    return value


def read_fraction(text: str) -> Fraction:
    """Return gamma as it was written."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InvalidInputError("must be a number above 1", where="--gamma") from None
