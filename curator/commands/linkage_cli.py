"""`veiltab curator linkage` and `match-rates`: what a curator knows of its links, and what it releases of them."""

from pathlib import Path

import click

from veiltab.common.command.cli import PATH, emit, json_option, json_text
from veiltab.common.errors import InvalidInputError
from veiltab.curator.budget.entries import percent
from veiltab.curator.budget.ledger_text import spent_text
from veiltab.curator.officer.opened import OpenedState
from veiltab.curator.officer.options import with_standing


@click.command(epilog="Example: veiltab curator linkage study.toml --name alice --state state --picture ladder.svg")
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
@json_option
def linkage(standing: OpenedState, picture: Path | None, out: Path | None, as_json: bool) -> None:
    """Show which keys linked how many rows, and how good the links are by estimate; the command sends nothing."""
    from veiltab.curator.linkage.linkage_text import (
        ladder_picture,
        linkage_json,
        linkage_text,
        own_words,
        wrong_links_json,
    )
    from veiltab.curator.officer.match_rates import linked_report

    _, report = linked_report(standing)
    categories, lacking = own_words(standing.study, standing.name)
    for path in filter(None, (picture, out)):
        if not path.parent.is_dir():
            raise InvalidInputError("there is no such folder", where=str(path.parent), remedy="Create it first.")
    if picture is not None:
        picture.write_text(ladder_picture(report), "utf-8")
    if out is not None:
        out.write_text(wrong_links_json(report, standing.name), "utf-8")
    emit(as_json, linkage_json(report, categories, lacking), linkage_text(report, categories, lacking))


@click.command(
    "match-rates",
    epilog="Example: veiltab curator match-rates study.toml --name alice --state state --attribute age --epsilon 0.1"
    " --out rates.json --yes",
)
@with_standing
@click.option("--attribute", required=True, help="Of this curator; each has one table, once and for all.")
@click.option("--epsilon", required=True, help="Of the table, pure: it has noise of about 2.8 rows over epsilon.")
@click.option("--out", required=True, type=PATH, help="Write the table there, as JSON.")
@click.option("--person", "persons", multiple=True, help="Who decides; each of them, if the policy asks for several.")
@click.option("--yes", "is_agreed", is_flag=True, help="Charge and write it; else only show what it takes.")
@json_option
def match_rates(
    standing: OpenedState,
    attribute: str,
    epsilon: str,
    out: Path,
    persons: tuple[str, ...],
    is_agreed: bool,
    as_json: bool,
) -> None:
    """Release how many rows of each category of an attribute are linked, with noise, and charge this curator's ledger.

    `veiltab researcher estimate --match-rates` weights with it, so that links that are missing bias less. The same
    command later writes the same table and charges nothing.
    """
    from veiltab.common.storage.files import written_whole
    from veiltab.curator.linkage.linkage_text import rates_json, rates_text
    from veiltab.curator.officer.match_rates import check_rates, deciding, linked_report, release_rates

    asked, names = check_rates(standing, attribute, epsilon), deciding(standing, persons)
    _, report = linked_report(standing)
    allowance = standing.ledger.allowance
    share = allowance.share(allowance.charge_of_pure_epsilon(asked))
    if not out.parent.is_dir():
        raise InvalidInputError("there is no such folder", where=str(out.parent), remedy="Create it first.")
    if not is_agreed:
        told = f"A table of {attribute} takes {percent(share)} of the budget. {spent_text(standing.ledger)}"
        data = {"attribute": attribute, "epsilon": asked, "share": share, "written": None}
        emit(as_json, data, f"{told}\nNothing is charged or written; say --yes to release it.")
        return
    rates, is_new = release_rates(standing, attribute, asked, names)
    data = rates_json(rates, is_hub=report.is_hub)
    with written_whole(out) as file:
        file.write(f"{json_text(data)}\n".encode())
    charge = f"Epsilon {asked} {'is charged' if is_new else 'was charged before'}: {percent(share)} of the budget."
    told = rates_text(rates, charge, is_hub=report.is_hub)
    emit(as_json, {**data, "share": share, "written": str(out)}, f"{told}\nWritten: {out}")
