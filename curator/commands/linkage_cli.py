"""`veiltab curator linkage` and `match-rates`: what a curator knows of its links, and what it releases of them."""

from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import click

from veiltab.common.command.cli import emit, json_text
from veiltab.common.command.new_files import NEW_FILE, force_option
from veiltab.common.errors import InvalidInputError
from veiltab.common.storage.named_files import check_place
from veiltab.curator.budget.entries import percent
from veiltab.curator.budget.ledger_text import spent_text
from veiltab.curator.budget.remaining import Kind
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.source_options import optional_table_options
from veiltab.curator.officer.opened import OpenedState
from veiltab.curator.officer.options import with_standing

T = TypeVar("T")
U = TypeVar("U")


@click.command(
    epilog="Example: veiltab curator linkage study.toml --state state --picture ladder.svg\n\n"
    "With --sample 200 --to sample.csv it writes a sample for clerks; --checked 200 --wrong 3 counts what they found."
)
@with_standing
@click.option("--picture", type=NEW_FILE, help="Write the ladder of keys there, as SVG.")
@click.option(
    "--for-researcher",
    "out",
    type=NEW_FILE,
    help="Write the estimated share of wrong links there, and nothing else: `veiltab researcher estimate"
    " --linkage-error FILE.json` takes the file.",
)
@force_option
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
def linkage(
    *,
    standing: OpenedState,
    picture: Path | None,
    out: Path | None,
    sample: int | None,
    to: Path | None,
    table: TableAddress | None,
    checked: int | None,
    wrong: int | None,
) -> None:
    """Show which keys linked how many rows, and how good the links are by estimate; the command sends nothing.

    The sample is of the table that the curator serves, or of that of --table, as it was when it was linked.
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
    from veiltab.curator.officer.rates_release import linked_report

    report = linked_report(standing)
    words = own_words(standing.study, standing.name)
    drawn, tested = _together("--sample", sample, "--to", to), _together("--checked", checked, "--wrong", wrong)
    if tested is not None and tested[0] > report.links:
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
    told = wrong_links_json(report, standing.name, tested) if out is not None else ""
    if tested is not None:
        plain["precision_by_clerks"] = tested_json(*tested)
        lines += f"\nby clerks: {tested_text(*tested)}"
    _write_sample(standing, drawn, table)
    if drawn is not None:
        plain["sample"] = {"links": sample, "file": str(to)}
        lines += f"\n{to} has {sample:,} linked people as this table writes them, numbered as at the other curators."
    if picture is not None:
        picture.write_text(ladder_picture(report), "utf-8")
    if out is not None:
        out.write_text(told, "utf-8")
    emit(plain, lines)


def _together(name: str, value: T | None, other: str, beside: U | None) -> tuple[T, U] | None:
    """Return two options that go together, None if neither is given; refuse one alone."""
    if value is not None and beside is not None:
        return value, beside
    if value is not None or beside is not None:
        raise InvalidInputError(f"{name} and {other} go together", remedy="Give both, or none of them.")
    return None


def _write_sample(standing: OpenedState, drawn: tuple[int, Path] | None, table: TableAddress | None) -> None:
    """Write so many people of a sample to a file, if that is wanted: of --table, or of the table that is served."""
    from veiltab.curator.linkage.linkages import Linkages
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
    sample = Linkages(standing.store.connection, standing.store.audit).latest_sample()
    write_sample(drawn[1], sample, drawn[0], table, standing.study, standing.name)


@click.command(
    "match-rates",
    epilog="Example: veiltab curator match-rates study.toml --state state --attribute age --epsilon 0.1"
    " --out rates.json --yes",
)
@with_standing
@click.option("--attribute", required=True, help="Of this curator; each has one table, once and for all.")
@click.option("--epsilon", required=True, help="Of the table, pure: it has noise of about 2.8 rows over epsilon.")
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the table there, as JSON.",
)
@click.option("--person", "persons", multiple=True, help="Who decides; each of them, if the policy asks for several.")
@click.option("--yes", "is_agreed", is_flag=True, help="Charge and write it; else only show what it takes.")
def match_rates(
    standing: OpenedState,
    attribute: str,
    epsilon: str,
    out: Path,
    persons: tuple[str, ...],
    is_agreed: bool,
) -> None:
    """Release how many rows of each category of an attribute are linked, with noise, and charge this curator's ledger.

    `veiltab researcher estimate --linkage-error FILE.json` weights with it, so that links that are missing bias less.
    The same command later writes the same table and charges nothing.
    """
    from veiltab.common.linkage.match_rates import rates_of
    from veiltab.common.storage.files import written_whole
    from veiltab.curator.linkage.linkage_text import rates_json, rates_text
    from veiltab.curator.officer.rates_release import check_rates, deciding, linked_report, linked_then, release_rates

    asked, names = check_rates(standing, attribute, epsilon), deciding(standing, persons)
    report, ledger = linked_report(standing), standing.ledger
    charge = ledger.budget.allowance.charge_of_pure_epsilon(asked)
    share = ledger.budget.allowance.share(charge)
    before = linked_then(standing, attribute)
    is_of_now = before in {None, report.links}
    earlier = "" if is_of_now else f" It is of an earlier linkage, of {before:,} people, and no later one renews it."
    check_place(out)
    there = None
    if out.exists():
        with suppress(InvalidInputError):
            there = rates_of(out.read_text("utf-8", "replace"), str(out))
        if there is None or (there.curator, there.attribute) != (standing.name, attribute):
            remedy = "Name a new file; nothing was charged or written."
            raise InvalidInputError("another file is there", where=str(out), remedy=remedy)
    if not is_agreed:
        kind = Kind(population=report.links, cells=standing.study.domain([attribute]).cells)
        after = f"after it one more release may have {ledger.budget.left_after(charge, kind)}"
        if not ledger.budget.holds(charge):
            after = "that is more than is left"
        told = f"A table of {attribute} takes {percent(share)} of the budget; {after}."
        if before is not None:
            told = f"The table of {attribute} was charged before; it is written again without a charge.{earlier}"
        told = f"{told} {spent_text(ledger)}"
        data = {"attribute": attribute, "epsilon": asked, "share": share, "written": None}
        emit(data, f"{told}\nNothing is charged or written; say --yes to release it.")
        return
    rates, is_new = release_rates(standing, report, attribute, asked, names)
    data = rates_json(rates, is_hub=report.is_hub)
    with written_whole(out) as file:
        file.write(f"{json_text(data)}\n".encode())
    paid = f"is charged: {percent(share)}" if is_new else f"was charged before: {percent(share)}"
    told = rates_text(rates, f"Epsilon {asked} {paid} of the budget.{earlier}", is_hub=report.is_hub)
    emit({**data, "share": share, "written": str(out)}, f"{told}\nWritten: {out}")
