"""`veiltab curator notify`: list the notices that were made, and try whether they arrive."""

import asyncio

import click

from veiltab.common.command.cli import emit
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.curator.notify.channels import channels_of, send
from veiltab.curator.notify.events import notice_facts
from veiltab.curator.notify.outbox import NOT_NEEDED, Delivery, Notice, Outbox
from veiltab.curator.officer.notify_settings import Kind, NotifySettings
from veiltab.curator.officer.open_state import OpenedState, with_own_state
from veiltab.curator.officer.options import policy_option
from veiltab.curator.officer.policy import policy_of
from veiltab.curator.officer.requests import moment

_SHOWN = 50


@click.command(epilog="Example: veiltab curator notify study.toml --state state --policy policy.toml --test")
@policy_option
@with_own_state
@click.option("--last", type=click.IntRange(min=1), default=_SHOWN, show_default=True, help="Only so many, the newest.")
@click.option("--test", is_flag=True, help="Send a notice that says it is a test by every channel of the policy now.")
@click.pass_context
def notify(context: click.Context, own_state: OpenedState, last: int, test: bool) -> None:
    """List the newest notices of the policy's table [notify], and whether each channel took them.

    With --test the exit code is 4 if a channel does not take the test.
    """
    if test:
        _send_test(context, own_state)
    else:
        deliveries = Outbox(own_state.store.connection).latest(last)
        lines = [_line(one) for one in deliveries] or ["There are no notices."]
        emit({"deliveries": [_plain(one) for one in deliveries]}, "\n".join(lines))


def _send_test(context: click.Context, own_state: OpenedState) -> None:
    look = "veiltab curator notify study.toml --state STATE"
    facts = notice_facts(Kind.TEST, own_state.study.id, own_state.name, "this is a test of the notices", look)
    problems = asyncio.run(_problems(_settings(own_state), Notice(kind=Kind.TEST, subject="", facts=facts)))
    lines = [f"{channel}: {problem or 'sent'}" for channel, problem in problems.items()]
    emit({"channels": {name: {"problem": problem} for name, problem in problems.items()}}, "\n".join(lines))
    if any(problems.values()):
        context.exit(UnavailableError.exit_code)


def _settings(own_state: OpenedState) -> NotifySettings:
    policy = policy_of(own_state.study, own_state.name, own_state.policy_path)
    if policy.notify is None:
        raise InvalidInputError(
            "the policy tells nobody",
            where=str(own_state.policy_path or "policy"),
            remedy="Add a table [notify]; docs/policy.md has its keys.",
        )
    return policy.notify


async def _problems(settings: NotifySettings, notice: Notice) -> dict[str, str]:
    """Send a notice by every channel; return why one does not take it, or an empty text, by its name."""
    problems: dict[str, str] = {}
    for channel, url in channels_of(settings).items():
        try:
            await send(channel, url, settings.authority, notice.title, notice.body(0))
        except UnavailableError as error:
            problems[channel] = error.problem
        else:
            problems[channel] = ""
    return problems


def _plain(entry: Delivery) -> dict[str, object]:
    return {
        **same_fields(entry, ("number", "channel", "attempts", "problem")),
        "event": entry.notice.kind.value,
        "created": moment(entry.created),
        "facts": entry.notice.facts,
        "sent": moment(entry.sent),
        "due": moment(entry.due),
    }


def _line(entry: Delivery) -> str:
    if entry.sent is not None:
        state = f"sent {moment(entry.sent)}"
    elif entry.due is not None:
        state = f"waits until {moment(entry.due)}" + (f" after {entry.attempts} attempts" if entry.attempts else "")
    elif entry.problem == NOT_NEEDED:
        state = "dropped"
    else:
        state = f"given up after {entry.attempts} attempts"
    problem = f": {entry.problem}" if entry.problem else ""
    release = entry.notice.facts.get("release", "")
    return f"{entry.number:5}  {entry.notice.facts['text']}  {release}  {entry.channel} {state}{problem}"
