"""`veiltab curator linkage`: what a curator knows of its links."""

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from veiltab.common.command.cli import emit
from veiltab.common.command.new_files import NEW_FILE, force_option
from veiltab.common.errors import InvalidInputError, NotReadyError
from veiltab.common.storage.named_files import check_place
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.source_options import config_option
from veiltab.curator.officer.open_state import OpenedState, with_own_state

if TYPE_CHECKING:
    from veiltab.curator.linkage.linkage_report import LinkageReport

T = TypeVar("T")
U = TypeVar("U")


@click.command(
    epilog="Example: veiltab curator linkage study.toml --state state --picture ladder.svg\n\n"
    "With --sample 200 --to sample.csv it writes a sample for clerks, which shows the hub who is in it; --checked 200"
    " --wrong 3 counts what they found."
)
@with_own_state
@click.option("--picture", type=NEW_FILE, help="Write the ladder of keys there, as SVG.")
@click.option(
    "--for-researcher",
    "out",
    type=NEW_FILE,
    help="Write the estimated share of wrong links there, and nothing else: `veiltab researcher estimate"
    " --linkage-error FILE.json` takes the file. It follows from links, and no epsilon counts it.",
)
@force_option
@click.option(
    "--sample",
    metavar="NUMBER|FILE",
    help="So many linked people are written to the file of --to: the identity fields of this curator's rows alone. At"
    " the hub, which learns no link, give the file of a spoke's sample, or its column `pair` alone.",
)
@click.option("--to", type=click.Path(dir_okay=False, path_type=Path), help="The file of the sample, CSV; a new one.")
@config_option
@click.option("--checked", type=click.IntRange(min=1), help="So many pairs of a sample were compared by clerks.")
@click.option("--wrong", type=click.IntRange(min=0), help="So many of them are not one person.")
def linkage(
    *,
    own_state: OpenedState,
    picture: Path | None,
    out: Path | None,
    sample: str | None,
    to: Path | None,
    table: TableAddress | None,
    checked: int | None,
    wrong: int | None,
) -> None:
    """Show which keys linked how many rows, and how good the links are by estimate; the command sends nothing.

    The sample is of the table that the curator serves, or of that of --config, as it was when it was linked.
    """
    from veiltab.curator.linkage.linkage_text import (
        ladder_picture,
        linkage_json,
        linkage_text,
        own_words,
        tested_json,
        tested_text,
        wrong_links_json,
    )

    report = _report(own_state)
    words = own_words(own_state.study, own_state.name)
    sample_to: tuple[int | Path, Path] | None = _together("--sample", _sample(sample, is_hub=report.is_hub), "--to", to)
    clerks = _together("--checked", checked, "--wrong", wrong)
    if clerks is not None and report.links is not None and clerks[0] > report.links:
        raise InvalidInputError(
            f"{checked:,} pairs were compared, and {report.links:,} people are linked",
            where="--checked",
            remedy="Count each pair of one sample once.",
        )
    paths = [path for path in (picture, out, to) if path is not None]
    if len({path.absolute() for path in paths}) < len(paths):
        raise InvalidInputError("two options name the same file", where=str(paths[-1]), remedy="Name another one.")
    for path in paths:
        check_place(path)
    plain, lines = linkage_json(report, *words), linkage_text(report, *words)
    shares = wrong_links_json(report, own_state.name, clerks) if out is not None else ""
    if clerks is not None:
        plain["precision_by_clerks"] = tested_json(*clerks)
        lines += f"\nby clerks: {tested_text(*clerks)}"
    links = _write_sample(own_state, sample_to, table)
    if sample_to is not None:
        plain["sample"] = {"links": links, "file": str(to)}
        lines += f"\n{to} has {links:,} linked people as this table writes them, with the numbers of the hub's rows."
    if picture is not None:
        picture.write_text(ladder_picture(report), "utf-8")
    if out is not None:
        out.write_text(shares, "utf-8")
    emit(plain, lines)


def _together(name: str, value: T | None, other: str, beside: U | None) -> tuple[T, U] | None:
    """Return two options that go together, None if neither is given; refuse one alone."""
    if value is not None and beside is not None:
        return value, beside
    if value is not None or beside is not None:
        raise InvalidInputError(f"{name} and {other} go together", remedy="Give both, or none of them.")
    return None


def _report(own_state: OpenedState) -> "LinkageReport":
    """Return what a curator knows of its latest linkage.

    Raises:
        InvalidInputError: the study has ids.
        NotReadyError: it is not linked yet.
    """
    from veiltab.curator.linkage.linkages import Linkages

    where = f"curator {own_state.name}"
    if own_state.study.identity is None:
        raise InvalidInputError(
            "the study has ids, and links nobody",
            where=where,
            remedy="A study with the table [identity] links rows; docs/linkage.md says how.",
        )
    report = Linkages(own_state.store.connection, own_state.store.audit).latest_report()
    if report is None:
        raise NotReadyError(
            "is not linked yet", where=where, remedy="`veiltab status` says what it waits for; ask again later."
        )
    return report


def _sample(text: str | None, *, is_hub: bool) -> int | Path | None:
    """Return the number of people of a sample, or at the hub the file of a spoke; None if there is none."""
    if text is None:
        return None
    if is_hub:
        return Path(text)
    if not text.isdecimal() or not int(text):
        raise InvalidInputError(f"{text!r} is not a number of people", where="--sample", remedy="Give one above 0.")
    return int(text)


def _write_sample(own_state: OpenedState, sample_to: tuple[int | Path, Path] | None, table: TableAddress | None) -> int:
    """Write people of a sample to a file, if that is wanted; return how many. `table` is None for the one served."""
    from veiltab.curator.linkage.linkages import Linkages
    from veiltab.curator.linkage.linked_people import write_sample

    if sample_to is None:
        if table is not None:
            raise InvalidInputError("--config is for a sample", remedy="Give it with --sample and --to.")
        return 0
    if table is None:
        served = own_state.store.served.served_table()
        if served is None:
            raise InvalidInputError(
                "it is not known where the table is",
                where=f"curator {own_state.name}",
                remedy="Give the file of `veiltab curator serve --config`.",
            )
        table = TableAddress.of(served.path)
    sample = Linkages(own_state.store.connection, own_state.store.audit).latest_sample()
    return write_sample(sample_to[1], sample, sample_to[0], table, own_state.study, own_state.name)
