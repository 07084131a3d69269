"""`veiltab status`: what a party is doing and what it waits for."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from veiltab.common.command.cli import emit, wants_json
from veiltab.common.command.options import identity_option, study_argument
from veiltab.common.command.parties import named_party
from veiltab.common.core.numbers.rounding import downward
from veiltab.common.errors import DeniedError, VeiltabError
from veiltab.common.observe.span_messages import PartyStatus, status_from_proto
from veiltab.common.observe.status import Activity, Budget, Observation
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.rpc.channel import call, connect
from veiltab.common.rpc.health import wait_until_serving
from veiltab.common.rpc.parties.identity import Identity
from veiltab.common.study.file import load_study
from veiltab.deploy.operate.calling import endpoint_of, identity_in
from veiltab.v1.status_pb2 import GetStatusRequest
from veiltab.v1.status_pb2_grpc import StatusServiceStub

_EVERY_SECONDS = 1.0
_WITHIN = click.FloatRange(min=0, min_open=True, max=3600)


@click.command(epilog="Example: veiltab status study.toml --identity pki/curator-alice --watch")
@study_argument
@identity_option
@click.option("--serves", "who", metavar="ROLE/NAME", help="Ask this party, or another, only whether it serves.")
@click.option("--within", default=5.0, show_default=True, type=_WITHIN, help="Seconds to keep asking that.")
@click.option("--endpoint", metavar="HOST:PORT", help="HOST:PORT of the party, if not the study file's.")
@click.option("--watch", is_flag=True, help="Refresh it on the screen until Ctrl-C.")
def status(
    study_path: Path, identity_folder: Path, who: str | None, within: float, endpoint: str | None, watch: bool
) -> None:
    """Show what a running party is doing and what it waits for; ask with its own certificate.

    With --serves any party of the study answers that serves the caller: exit code 0 if it serves, 4 if it does not
    answer, 3 if it refuses the caller.
    """
    if watch and (who or wants_json()):
        raise click.UsageError("--watch is for a screen; give it without --json and --serves.")
    study = load_study(study_path)
    identity = identity_in(identity_folder, study)
    party = named_party(study, who, "--serves") if who else identity.party
    address = endpoint or endpoint_of(study, party)
    if who:
        asyncio.run(wait_until_serving(identity, party, address, within=within))
        emit({"party": party.uri, "endpoint": address, "serving": True}, f"{party} serves at {address}.")
    elif watch:
        with suppress(KeyboardInterrupt):
            asyncio.run(_watch(identity, address))
    else:
        status = asyncio.run(_ask(identity, address))
        emit(_as_dict(status), "\n".join(lines(status, time.time())))


async def _ask(identity: Identity, address: str) -> PartyStatus:
    answers = _answers(identity, address, every=0.0)
    answer = await anext(answers)
    await answers.aclose()
    if isinstance(answer, VeiltabError):
        raise answer
    return answer


async def _answers(identity: Identity, address: str, *, every: float) -> AsyncGenerator[PartyStatus | VeiltabError]:
    """Ask every second; yield the party's status, or why there is none."""
    channel = connect(identity, identity.party, address)
    try:
        stub = StatusServiceStub(channel)
        while True:
            try:
                answer = await call(stub.GetStatus, GetStatusRequest(), peer=identity.party, once=True)
                yield status_from_proto(answer)
            except VeiltabError as error:
                yield error
            await asyncio.sleep(every)
    finally:
        await channel.close()


async def _watch(identity: Identity, address: str) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False, vertical_overflow="crop") as live:
        async for answer in _answers(identity, address, every=_EVERY_SECONDS):
            if isinstance(answer, DeniedError):
                raise answer
            output = [str(answer)] if isinstance(answer, VeiltabError) else lines(answer, time.time())
            clock = f"{datetime.now(UTC):%H:%M:%S} UTC, every second; Ctrl-C ends"
            live.update(Text("\n".join([*output, "", clock])), refresh=True)


def lines(status: PartyStatus, now: float) -> list[str]:
    """Return a status for people, line by line.

    Args:
        now: Unix seconds.
    """
    view = status.observation
    rest = status.certificate_ends - now
    good = f"good for {duration(rest)}" if rest >= 0 else "EXPIRED: renew it with `veiltab pki issue`"
    head = (
        f"{status.party} of study {status.party.study}: up {duration(now - status.started)}, veiltab {status.version},"
        f" certificate {good}"
    )
    return [
        head,
        *map(_budget_line, view.budgets),
        *_numbers(view),
        *(line for work in view.work for line in _work_lines(work, now)),
    ]


def _budget_line(budget: Budget) -> str:
    if budget.delta is None:
        return f"  budget of {budget.protects}: epsilon {downward(budget.left)} of {budget.epsilon} left"
    delta = "" if budget.left_delta is None else f" at delta {delta_text(budget.left_delta)}"
    return (
        f"  budget of {budget.protects}: epsilon {budget.epsilon} at delta {delta_text(budget.delta)}; one more release"
        f" like the last may have {budget.left.normalize():f}{delta}"
    )


def _numbers(view: Observation) -> list[str]:
    queues = ", ".join(f"{name} {depth}" for name, depth in view.queues.items())
    kinds = dict.fromkeys(kind for kind, _ in view.counts)
    counts = {
        kind: ", ".join(f"{n} {state}" for (of, state), n in view.counts.items() if of == kind and n) for kind in kinds
    }
    counted = [f"  {kind}s: {text}" for kind, text in counts.items() if text]
    return [*([f"  to be done: {queues}"] if queues else []), *counted]


def _work_lines(task: Activity, now: float) -> list[str]:
    since = f" for {duration(now - task.since)}" if task.since else ""
    first = f"  {' '.join(filter(None, (task.kind, task.id)))}  {task.state}{since}" + (
        f"  {task.about}" if task.about else ""
    )
    ended = task.state in {"denied", "failed", "expired"}
    return [first] + ([f"      {'because' if ended else 'waits for'}: {task.waiting_for}"] if task.waiting_for else [])


def duration(seconds: float) -> str:
    """Return a time span in its two largest units."""
    whole = max(0, int(seconds))
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    parts: list[str] = []
    for name, length in units:
        count, whole = divmod(whole, length)
        if count or parts or name == "s":
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


def _as_dict(status: PartyStatus) -> dict[str, object]:
    view = status.observation
    return {
        "party": status.party.uri,
        "role": status.party.role.value,
        "name": status.party.name,
        "version": status.version,
        "started": _instant(status.started),
        "certificate_ends": _instant(status.certificate_ends),
        "work": [asdict(work) | {"since": _instant(work.since) if work.since else None} for work in view.work],
        "counts": [{"kind": kind, "state": state, "number": number} for (kind, state), number in view.counts.items()],
        "queues": dict(view.queues),
        "budgets": [asdict(budget) for budget in view.budgets],
    }


def _instant(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
