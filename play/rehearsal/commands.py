"""The commands that people try in a rehearsal, each as the party whose command it is."""

import shlex
from collections.abc import Iterator

from veiltab.common.rpc.parties.identity import Role
from veiltab.play.rehearsal.rehearsal import Rehearsal

LABEL = "first"
"""Of the release that the commands ask for and read."""


def commands_to_try(rehearsal: Rehearsal) -> list[tuple[str, list[str]]]:
    """Return (who types them, commands), in an order in which they work."""
    return [*_of_releases(rehearsal), *_of_rounds(rehearsal)]


def _of_releases(rehearsal: Rehearsal) -> Iterator[tuple[str, list[str]]]:
    """Yield what researchers, curators and analysts try, in a study with curators."""
    study, local = rehearsal.study, rehearsal.local
    if not study.curators:
        return
    researcher = study.researchers[0].name
    as_researcher = _connection(rehearsal, Role.RESEARCHER, researcher)
    report = str(local.folder / f"{LABEL}.html")
    options = (*rehearsal.usual_request(), "--purpose", "to try it", "--label", LABEL, "--wait")
    yield f"researcher {researcher}", [_line("researcher", "request", *as_researcher, *options)]
    for curator in study.curators:
        state = str(local.state_folder(Role.CURATOR, curator.name))
        own = (str(local.study_path), "--state", state)
        person = ("--person", "Ana Diaz")
        approve, deny = (("--reason", reason) for reason in ("as agreed", "not agreed"))
        identity = ("--identity", str(local.identity_folder(Role.CURATOR, curator.name)))
        yield (
            f"curator {curator.name}",
            [
                _line("curator", "requests", *own),
                _line("curator", "approve", *own, *person, *approve, "--release") + " ID",
                _line("curator", "deny", *own, *person, *deny, "--release") + " ID",
                _line("curator", "ledger", *own),
                _line("curator", "console", *own, *person, *identity),
            ],
        )
    result = ("--release", LABEL)
    yield (
        f"researcher {researcher}, once it is ready",
        [
            _line("researcher", "estimate", *as_researcher, *result),
            _line("researcher", "report", *as_researcher, *result, "--out", report),
        ],
    )
    for analyst in study.analysts_of(researcher)[:1]:
        as_analyst = _connection(rehearsal, Role.ANALYST, analyst.name)
        yield f"analyst {analyst.name}", [_line("researcher", "estimate", *as_analyst, *result)]


def _of_rounds(rehearsal: Rehearsal) -> Iterator[tuple[str, list[str]]]:
    """Yield what a researcher and the nodes try, in a study with nodes."""
    study, local = rehearsal.study, rehearsal.local
    if study.nodes is None:
        return
    request, tokens = rehearsal.usual_round(), str(local.folder / "tokens.csv")
    as_researcher = _connection(rehearsal, Role.RESEARCHER, request.researcher)
    options = ("--question", request.question, "--epsilon", f"{request.epsilon:f}", "--rate", f"{request.rate}")
    number = str(request.nodes)
    node = (
        "--identity",
        str(local.identity_folder(Role.NODE, study.nodes.name)),
        "--state",
        str(local.folder / "fleet"),
    )
    dummies = ("--tokens", tokens, "--distribution", request.values)
    yield (
        f"researcher {request.researcher}: a round",
        [
            _line("collect", "open", *as_researcher, *options, "--population", number),
            _line("collect", "enrol", *as_researcher, "--nodes", number, "--out", tokens, "--round") + " ID",
        ],
    )
    yield "dummy nodes", [_line("node", "fleet", str(local.study_path), *node, *dummies, "--round") + " ID"]
    yield (
        f"researcher {request.researcher}: its result",
        [_line("collect", name, *as_researcher, "--round") + " ID" for name in ("close", "estimate")],
    )


def _connection(rehearsal: Rehearsal, role: Role, name: str) -> tuple[str, ...]:
    local = rehearsal.local
    return (str(local.study_path), "--identity", str(local.identity_folder(role, name)))


def _line(*words: str) -> str:
    return shlex.join(["veiltab", *words])
