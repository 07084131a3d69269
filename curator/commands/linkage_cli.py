"""`veiltab curator linkage`: what a curator knows after it was linked with the others."""

from pathlib import Path

import click

from veiltab.common.command.cli import emit, json_option
from veiltab.common.errors import InvalidInputError, NotReadyError
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
    from veiltab.curator.linkage.linkage_report import report_from_text
    from veiltab.curator.linkage.linkage_text import (
        ladder_picture,
        linkage_json,
        linkage_text,
        own_words,
        wrong_links_json,
    )
    from veiltab.curator.linkage.linkages import Linkages

    where = f"curator {standing.name}"
    if standing.study.identity is None:
        raise InvalidInputError(
            "the study has ids, and links nobody",
            where=where,
            remedy="A study with the table [identity] links rows; docs/linkage.md says how.",
        )
    text = Linkages(standing.store.connection, standing.store.audit).latest_report()
    if not text:
        raise NotReadyError(
            "is not linked yet", where=where, remedy="`veiltab status` says what it waits for; ask again later."
        )
    report = report_from_text(text)
    categories, lacking = own_words(standing.study, standing.name)
    for path in filter(None, (picture, out)):
        if not path.parent.is_dir():
            raise InvalidInputError("there is no such folder", where=str(path.parent), remedy="Create it first.")
    if picture is not None:
        picture.write_text(ladder_picture(report), "utf-8")
    if out is not None:
        out.write_text(wrong_links_json(report, standing.name), "utf-8")
    emit(as_json, linkage_json(report, categories, lacking), linkage_text(report, categories, lacking))
