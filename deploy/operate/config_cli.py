"""`veiltab config`: check a party's configuration file before starting the party."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import EXIT_CODES, PATH, emit, json_option
from veiltab.common.errors import InvalidInputError

if TYPE_CHECKING:
    from veiltab.deploy.operate.party_check import Findings, Problem


@click.group(epilog=EXIT_CODES)
def config() -> None:
    """Work with a party's configuration file, which `serve --config` reads.

    Example: veiltab config check party.toml
    """


@config.command(epilog="Example: veiltab config check party.toml --json")
@click.argument("path", metavar="PARTY.toml", type=PATH)
@json_option
def check(path: Path, as_json: bool) -> int:
    """Check the file and everything that it names. The check starts, changes and sends nothing.

    VEILTAB_IDENTITY and VEILTAB_STATE override the file, as they do for `serve`.
    """
    from veiltab.deploy.operate.party_check import check_party

    findings = check_party(path)
    emit(as_json, _as_dict(findings), _as_text(findings))
    return InvalidInputError.exit_code if findings.problems else 0


def _as_dict(findings: "Findings") -> dict[str, object]:
    return {
        "ok": not findings.problems,
        "file": findings.path,
        "party": None if findings.party is None else findings.party.uri,
        "problems": [{"file": findings.path, **asdict(problem)} for problem in findings.problems],
        "notes": findings.notes,
    }


def _as_text(findings: "Findings") -> str:
    who = "" if findings.party is None else f" for {findings.party}"
    count = len(findings.problems)
    verdict = "ready" if not count else f"{count} problem{'s' if count > 1 else ''}"
    lines = [f"{findings.path}: {verdict}{who}"]
    lines += [f"  problem: {_problem(findings.path, problem)}" for problem in findings.problems]
    lines += [f"  {note}" for note in findings.notes]
    return "\n".join(lines)


def _problem(path: Path, problem: "Problem") -> str:
    places = [
        str(path),
        *([problem.key] if problem.key else []),
        *([problem.where] if problem.where != str(path) else []),
    ]
    return f"{': '.join(places)}: {problem.problem}. {problem.fix}"
