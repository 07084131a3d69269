"""`veiltab rehearse`: a study on this machine, with dummy tables."""

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from veiltab.common.command.cli import emit, note, wants_json
from veiltab.common.command.options import study_argument
from veiltab.common.errors import InvalidInputError
from veiltab.play.local.command import end_parties_on_sigterm, out_option, rehearsal_options
from veiltab.play.local.printing import (
    CELL_HEADINGS,
    analysis_records,
    analysis_rows,
    cell_rows,
    console_of,
    print_table,
)

if TYPE_CHECKING:
    from rich.console import Console

    from veiltab.play.rehearsal.rehearsal import Rehearsal
    from veiltab.play.rehearsal.trial import RehearsedRelease, RehearsedRound

_MOST_TABLES = 3
"""Tables of a release of several that are printed cell by cell."""


@click.command(
    epilog="Example: veiltab rehearse study.toml\n\n"
    "One request and its result: veiltab rehearse study.toml --policy alice=policy.toml"
    " --request '--attributes education,wage --epsilon 0.5'"
)
@study_argument
@rehearsal_options
@click.option("--once", is_flag=True, help="Make one request, or one round of nodes, print its result and end.")
@click.option("--request", "request", help="The same with these options of `veiltab researcher request`, in quotes.")
@out_option("veiltab-rehearsal")
def rehearse(
    study_path: Path,
    population: int | None,
    policies: dict[str, Path],
    once: bool,
    request: str | None,
    out: Path,
) -> None:
    """Run a whole study here with dummy tables: every party a process, over real TLS, before any data is touched.

    The study keeps its budget, modes, alignment and missing rules; its endpoints become ports of this machine, its id
    and title say that it is a rehearsal, and its certificates are new. Without --once or --request it runs until
    Ctrl-C, and prints the commands to try as each party.
    """
    from veiltab.play.rehearsal.rehearsal import RehearsalOptions, prepare
    from veiltab.play.rehearsal.trial import rehearsed_release, rehearsed_round

    words = _words(request)
    note("writing dummy tables and certificates")
    rehearsal = prepare(RehearsalOptions(study=study_path, out=out, people=population, policies=policies))
    if request is not None:
        rehearsal.curators_tables()
    end_parties_on_sigterm()
    with rehearsal.local as local:
        note("starting every party as a process of its own, under mutual TLS")
        pids = local.start_all()
        parties = [{"role": role.value, "name": name, "pid": pid} for (role, name), pid in pids.items()]
        if not once and request is None:
            try:
                # Anyone who reads the invitation may interrupt at once.
                emit(_as_dict(rehearsal) | {"parties": parties}, _invitation(rehearsal))
                _say_who_ends(rehearsal)
            except KeyboardInterrupt:
                note(f"The rehearsal has ended. Its files stay in {rehearsal.local.folder}/")
            return
        release = made_round = None
        if request is not None or rehearsal.study.curators:
            release = rehearsed_release(rehearsal, words or rehearsal.usual_request(), note)
        if request is None and rehearsal.study.nodes is not None:
            made_round = rehearsed_round(rehearsal, note)
    if wants_json():
        facts = {"release": release and _release_dict(release), "round": made_round and _round_dict(made_round)}
        emit(_as_dict(rehearsal) | {"parties": parties} | facts, "")
    else:
        _print(rehearsal, release, made_round)


def _words(request: str | None) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(request or ""))
    except ValueError as error:
        raise InvalidInputError(f"these are not options ({error})", where="--request") from None


def _say_who_ends(rehearsal: "Rehearsal") -> NoReturn:
    """Say which parties end by themselves, until Ctrl-C."""
    before: dict[object, str] = {}
    while True:
        ended = rehearsal.local.ended()
        for (role, name), words in ended.items():
            if (role, name) not in before:
                note(f"{role.value} {name} has ended: {words}")
        before = dict(ended)
        time.sleep(0.5)


def _as_dict(rehearsal: "Rehearsal") -> dict[str, object]:
    from veiltab.play.rehearsal.commands import commands_to_try

    return {
        "study": rehearsal.study.id,
        "title": rehearsal.study.title,
        "data": "dummy",
        "people": rehearsal.people,
        "folder": rehearsal.local.folder,
        "study_file": rehearsal.local.study_path,
        "tables": rehearsal.local.tables,
        "commands": dict(commands_to_try(rehearsal)),
    }


def _release_dict(release: "RehearsedRelease") -> dict[str, object]:
    from veiltab.researcher.estimates.table import to_records

    return {
        "id": release.status.release_id,
        "state": release.status.state.value,
        "approved_by_a_person_at": list(release.approved),
        "tables": [
            {
                "attributes": list(table.estimate.domain.names),
                "distance": table.distance,
                "means": [
                    {"attribute": name, "groups": analysis_records(*pair, "group")}
                    for name, pair in table.means.items()
                ],
                "rows": to_records(table.estimate, table.fractions),
            }
            for table in release.tables
        ],
    }


def _round_dict(result: "RehearsedRound") -> dict[str, object]:
    return {
        "id": result.answer.status.round.round_id,
        "question": result.request.question,
        "estimate": result.estimate.counts.tolist(),
        "truth": result.truth.tolist(),
        "distance": result.distance,
    }


def _invitation(rehearsal: "Rehearsal") -> str:
    """Return what a person can do now."""
    from veiltab.play.rehearsal.commands import commands_to_try

    lines = [_headline(rehearsal), "", "Try, in other terminals:"]
    for who, commands in commands_to_try(rehearsal):
        lines += [f"\n{who}", *(f"  {command}" for command in commands)]
    return "\n".join([*lines, "", "Ctrl-C ends the rehearsal."])


def _headline(rehearsal: "Rehearsal") -> str:
    people = "" if rehearsal.tables is None else f", {rehearsal.people:,} people in the table of every curator"
    return (
        f"{rehearsal.study.title} ({rehearsal.study.id})\n"
        f"All data are dummies{people}: nothing here is a result of the study.\n"
        f"Study file, certificates, dummy tables, states and logs: {rehearsal.local.folder}/"
    )


def _print(rehearsal: "Rehearsal", release: "RehearsedRelease | None", made_round: "RehearsedRound | None") -> None:
    console = console_of()
    click.echo(f"{_headline(rehearsal)}\n")
    if release is not None:
        _print_release(console, release)
    if made_round is not None:
        rows = [
            (label, f"{estimated:,.0f}", f"{true:,}")
            for label, estimated, true in zip(
                made_round.estimate.labels, made_round.estimate.counts, made_round.truth, strict=True
            )
        ]
        title = f"{made_round.request.question}: {made_round.answer.status.round.population:,} dummy nodes"
        print_table(console, title, ("value", "estimate", "dummy truth"), rows)
        console.print(f"Total variation between estimate and dummy truth: {made_round.distance:.4f}")


def _print_release(console: "Console", release: "RehearsedRelease") -> None:
    for table in release.tables[:_MOST_TABLES]:
        names = ", ".join(table.estimate.domain.names)
        headings = (*CELL_HEADINGS, "dummy truth")
        print_table(console, f"{names} (dummy people)", headings, cell_rows(table.estimate, table.fractions))
        for name, pair in table.means.items():
            title, columns = f"Mean of {name} (dummy people)", ("", "estimate", "95% interval", "dummy truth")
            print_table(console, title, columns, analysis_rows(*pair))
    if len(release.tables) > 1:
        rows = [(", ".join(table.estimate.domain.names), f"{table.distance:.4f}") for table in release.tables]
        print_table(console, f"All {len(rows)} tables", ("table", "distance from the dummy truth"), rows)
    else:
        console.print(f"Total variation between projected estimate and dummy truth: {release.tables[0].distance:.4f}")
    persons = " and at ".join(release.approved)
    console.print(f"Approved by a person at {persons}." if persons else "Approved by the policies.")
