"""`python -m veiltab.play.studies.adult_extract RAW OUT`: the rows of the linked census, from UCI's two files.

RAW holds `adult.data` and `adult.test`. Every number becomes the lower edge of its bin in linked.toml, texts stay as
they are; the survey weight, which is not an attribute of a person, is left out. Rows keep the order of the files.
"""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq

from veiltab.common.command.cli import EXIT_CODES, PATH, emit, run
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.rules import AttributeRule
from veiltab.common.study.file import load_study
from veiltab.play.studies.linked_tables import ATTRIBUTION, STUDY_FILE

FILES = ("adult.data", "adult.test")
"""In the order in which their rows follow one another."""

_VALUES = 15
_COLUMNS = {
    "age": 0,
    "workclass": 1,
    "education": 3,
    "education_years": 4,
    "marital": 5,
    "occupation": 6,
    "relationship": 7,
    "race": 8,
    "sex": 9,
    "capital_gain": 10,
    "capital_loss": 11,
    "hours": 12,
    "country": 13,
    "salary": 14,
}
"""Attribute -> its place in a line of the files."""


def extract(raw: Path) -> pa.Table:
    """Return the rows of the files in the study's bins, one text column an attribute, in study order.

    Args:
        raw: the folder of the two files.

    Raises:
        InvalidInputError: a file cannot be read, or a line is not one of Adult.
    """
    rows = [line for name in FILES for line in _lines(raw / name)]
    columns = {
        rule.name: pa.array([_binned(rule, row[_COLUMNS[rule.name]]) for row in rows]).dictionary_encode()
        for rule in load_study(STUDY_FILE).attributes
    }
    return pa.table(columns).replace_schema_metadata({"attribution": ATTRIBUTION.read_text("utf-8")})


def _lines(path: Path) -> Iterator[list[str]]:
    """Yield the values of each person in one file; adult.test begins with a remark, and both end with an empty line."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for values in csv.reader(file, skipinitialspace=True):
                if not values or values[0].startswith("|"):
                    continue
                if len(values) != _VALUES:
                    raise InvalidInputError(f"a line has {len(values)} values instead of {_VALUES}", where=str(path))
                yield values
    except OSError as error:
        raise InvalidInputError(
            f"the file cannot be read ({error.strerror})",
            where=str(path),
            remedy="Give the folder of adult.data and adult.test.",
        ) from None


def _binned(rule: AttributeRule, raw: str) -> str:
    """Return a raw value, or the lower edge of its bin."""
    coding = rule.coding
    symbol = coding.code(raw)
    if symbol < 0:
        raise InvalidInputError(f"a line has a value that the study does not know, {raw[:60]!r}", where=rule.name)
    if coding.bins:
        return str(coding.bins[symbol])
    return raw if coding.is_missing(raw) else coding.categories[symbol]


@click.command(
    name="adult_extract",
    epilog=f"Example: python -m veiltab.play.studies.adult_extract adult people.parquet\n{EXIT_CODES}",
)
@click.argument("raw", type=PATH)
@click.argument("out", type=PATH)
def command(raw: Path, out: Path) -> None:
    """Write the people of adult.data and adult.test, folder RAW, in the study's bins to the Parquet file OUT."""
    table = extract(raw)
    try:
        pq.write_table(table, out, compression="zstd", compression_level=19)
    except OSError as error:
        raise InvalidInputError(f"the file cannot be written ({error.strerror})", where=str(out)) from None
    emit({"rows": table.num_rows, "out": out}, f"{table.num_rows:,} people: {out}")


if __name__ == "__main__":
    sys.exit(run(command))
