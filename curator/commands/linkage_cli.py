"""`veiltab curator linkage`: what a curator knows after it was linked with the others."""

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from veiltab.common.command.cli import emit, json_option
from veiltab.common.errors import InvalidInputError, NotReadyError
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.source_options import optional_table_options
from veiltab.curator.officer.opened import Standing
from veiltab.curator.officer.options import with_standing

if TYPE_CHECKING:
    from veiltab.curator.linkage.linkages import LinkedSample

T = TypeVar("T")
U = TypeVar("U")


@click.command(
    epilog="Examples: veiltab curator linkage study.toml --name alice --state state --picture ladder.svg\n\n"
    "veiltab curator linkage study.toml --name alice --state state --sample 200 --to sample.csv\n\n"
    "veiltab curator linkage study.toml --name alice --state state --checked 200 --wrong 3"
)
@with_standing
@click.option(
    "--picture", type=click.Path(dir_okay=False, path_type=Path), help="Write the ladder of keys there, as SVG."
)
@click.option(
    "--for-researcher",
    "out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the estimated share of wrong links there, and nothing else: `veiltab researcher estimate"
    " --linkage-error estimated --linkage-report` takes the file.",
)
@click.option(
    "--sample",
    type=click.IntRange(1, 10_000),
    help="So many linked people are written to the file of --to: the identity fields of this curator's rows alone. The"
    " same number at another curator gives the same people in the same order.",
)
@click.option("--to", type=click.Path(dir_okay=False, path_type=Path), help="The file of the sample, CSV; a new one.")
@optional_table_options
@click.option("--checked", type=click.IntRange(min=1), help="So many pairs of a sample were compared by clerks.")
@click.option("--wrong", type=click.IntRange(min=0), help="So many of them are not one person.")
@json_option
def linkage(
    *,
    standing: Standing,
    picture: Path | None,
    out: Path | None,
    sample: int | None,
    to: Path | None,
    table: TableAddress | None,
    checked: int | None,
    wrong: int | None,
    as_json: bool,
) -> None:
    """Show which keys linked how many rows, and how good the links are by estimate; the command sends nothing.

    The sample is of the table that the curator serves, or of that of --table, as it was when it was linked.
    """
    from veiltab.common.study.identity_table import absent_fields
    from veiltab.curator.commands.linkage_text import (
        ladder_picture,
        linkage_json,
        linkage_text,
        tested_json,
        tested_text,
        wrong_links_json,
    )
    from veiltab.curator.linkage.linkage_report import report_from_text
    from veiltab.curator.linkage.linkages import Linkages

    where = f"curator {standing.name}"
    if standing.study.identity is None:
        raise InvalidInputError(
            "the study has ids, and links nobody",
            where=where,
            remedy="A study with the table [identity] links rows; docs/linkage.md says how.",
        )
    known = Linkages(standing.store.connection, standing.store.audit)
    text = known.latest_report()
    if not text:
        raise NotReadyError(
            "is not linked yet", where=where, remedy="`veiltab status` says what it waits for; ask again later."
        )
    report = report_from_text(text)
    categories = {rule.name: rule.attribute.categories for rule in standing.study.attributes_of(standing.name)}
    both = {name: standing.study.curator(name) for name in (standing.name, standing.study.identity.hub)}
    absent = absent_fields(standing.study.identity, both.values())
    lacking = {key: f"needs {field}, which {name} lacks" for name, field, keys in absent for key in keys}
    drawn, tested = _together("--sample", sample, "--to", to), _together("--checked", checked, "--wrong", wrong)
    if tested is not None and tested[0] > report.links:
        raise InvalidInputError(
            f"{checked:,} pairs were compared, and {report.links:,} people are linked",
            where="--checked",
            remedy="Count each pair of one sample once.",
        )
    for path in filter(None, (picture, out, to)):
        if not path.parent.is_dir():
            raise InvalidInputError("there is no such folder", where=str(path.parent), remedy="Create it first.")
    plain, lines = linkage_json(report, categories, lacking), linkage_text(report, categories, lacking)
    _write_sample(standing, known.latest_sample(), drawn, table)
    if drawn is not None:
        plain["sample"] = {"links": sample, "file": str(to)}
        lines += f"\n{to} has {sample:,} linked people as this table writes them, numbered as at the other curators."
    if picture is not None:
        picture.write_text(ladder_picture(report), "utf-8")
    if tested is not None:
        plain["precision_by_clerks"] = tested_json(*tested)
        lines += f"\nby clerks: {tested_text(*tested)}"
    if out is not None:
        out.write_text(wrong_links_json(report, standing.name, tested), "utf-8")
    emit(as_json, plain, lines)


def _together(name: str, value: T | None, other: str, beside: U | None) -> tuple[T, U] | None:
    """Return two options that go together, None if neither is given; refuse one alone."""
    if value is not None and beside is not None:
        return value, beside
    if value is not None or beside is not None:
        raise InvalidInputError(f"{name} and {other} go together", remedy="Give both, or none of them.")
    return None


def _write_sample(
    standing: Standing, sample: "LinkedSample", drawn: tuple[int, Path] | None, table: TableAddress | None
) -> None:
    """Write so many people of a sample to a file, if that is wanted: of --table, or of the table that is served."""
    from veiltab.curator.linkage.linked_people import write_sample

    if drawn is None:
        if table is not None:
            raise InvalidInputError("--table is that of a sample", remedy="Give it with --sample and --to.")
        return
    if table is None:
        served = standing.store.served.served_table()
        if served is None:
            raise InvalidInputError(
                "it is not known where the table is",
                where=f"curator {standing.name}",
                remedy="Give it by --table, with the options of `veiltab curator serve`.",
            )
        table = TableAddress.of(served.path)
    write_sample(drawn[1], sample, drawn[0], table, standing.study, standing.name)
