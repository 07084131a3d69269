"""How a release stands at its parties: a desk asks each of them, and remembers what they say."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from math import inf

from veiltab.common.core.texts.message_fields import words_from_proto
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import (
    DeniedError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.release.messages.release_messages import release_from_proto, spec_from_proto, state_from_proto
from veiltab.common.release.state import ReleaseState, ended_without_result
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.parties.signing import SignedText, signed_from_proto
from veiltab.common.rpc.peer import pause_after
from veiltab.common.rpc.waiting.changes import LONGEST_WAIT
from veiltab.common.study.file import Study
from veiltab.researcher.parties.parties import PartyLinks
from veiltab.researcher.parties.server_findings import CuratorsTest, curators_test_from_proto
from veiltab.researcher.records.releases import ResearcherRelease
from veiltab.researcher.records.store import ResearcherStore
from veiltab.v1 import curator_pb2, server_release_pb2

CuratorAnswers = Mapping[str, curator_pb2.GetProposalResponse]
"""Curator -> what it says about a release."""

Statuses = dict[str, tuple[ReleaseState, str]]
"""Role and name of a party -> where a release stands there, and what the party waits for."""

_FIRST_WAIT = 0.5
"""Seconds that a curator's first answer may wait: a small release is over by then, and people read of any other."""

_STEPS = 64
"""Most steps of a peer whose times are kept."""

_STEP_LENGTH = 64
"""Most bytes of the name of such a step."""

_ORDER = [s for s in ReleaseState if not s.unsuccessful]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What a server says that it published of a release.

    Args:
        salt: with which the digests of the columns begin.
        columns: attribute -> perturbed column, of a small release; nothing of another.
        statement: what it states, signed; None if it was not asked.
    """

    spec: TableSpec
    salt: bytes
    columns: Mapping[str, bytes] = field(repr=False)
    statement: SignedText | None = None


@dataclass(kw_only=True, eq=False)
class _Poll:
    """The questions to the curators about a release, and what each said last.

    `may_go_on` says that the last answers are worth another step, `attempt` how many were not. `is_enough` says that
    the release was ready at all curators with columns in it, `end` how it ended at another one nevertheless.
    """

    under_way: dict[str, asyncio.Task[curator_pb2.GetProposalResponse | VeiltabError]] = field(default_factory=dict)
    answers: dict[str, curator_pb2.GetProposalResponse | VeiltabError] = field(default_factory=dict)
    furthest: dict[str, int] = field(default_factory=dict)
    looks_at_server: int = 0
    may_go_on: bool = False
    attempt: int = 0
    is_enough: bool = False
    end: VeiltabError | None = None

    def is_worth_asking(self, curator: str, curators: int) -> bool:
        """Whether to ask a curator now: not twice at a time, nor while only others have something left to do."""
        over = {name for name, position in self.furthest.items() if position >= _position(ReleaseState.READY)}
        are_over = self.is_enough or len(over) == curators
        return curator not in self.under_way and (curator not in over or are_over)

    def take(self) -> bool:
        """Take the answers that are there; return whether a curator is further than it ever was."""
        is_further = False
        for name in [name for name, question in self.under_way.items() if question.done()]:
            self.answers[name] = answer = self.under_way.pop(name).result()
            if not isinstance(answer, VeiltabError):
                position = _position(state_from_proto(answer.state))
                is_further |= position > self.furthest.get(name, -1)
                self.furthest[name] = max(position, self.furthest.get(name, -1))
        return is_further


class Polling:
    """Asks curators and server about releases."""

    def __init__(self, study: Study, store: ResearcherStore) -> None:
        self.statuses: dict[str, Statuses] = {}
        self._study = study
        self._store = store
        # Release -> what was recorded of the curators' last answers: the same is not written again.
        self._recorded: dict[str, object] = {}
        self._polls: dict[str, _Poll] = {}

    def of(self, release_id: str) -> Statuses:
        """Return what the parties said last about a release; what is put there is remembered."""
        return self.statuses.setdefault(release_id, {})

    def forget(self, release_id: str) -> None:
        """Forget what the parties said about a release."""
        self.statuses.pop(release_id, None)
        self._recorded.pop(release_id, None)

    async def ask_curators(
        self, release: ResearcherRelease, parties: PartyLinks
    ) -> dict[str, curator_pb2.GetProposalResponse]:
        """Make sure every curator has the request; record how far each is.

        It waits until one more curator answers, which each puts off a little.

        Returns:
            What each curator said last; of a release that is ready at every curator with columns in it, what those say
            at which it is ready.

        Raises:
            NotReadyError, UnavailableError: a curator does not answer, or has not answered yet.
            DeniedError, FailedReleaseError: one ended the release.
        """
        release_id = release.request.release_id
        poll, statuses = self._polls.setdefault(release_id, _Poll()), self.of(release_id)
        began = asyncio.get_running_loop().time()
        for name in parties.curators:
            statuses.setdefault(f"curator {name}", (ReleaseState.REQUESTED, "has not answered yet"))
            if poll.is_worth_asking(name, len(parties.curators)):
                poll.under_way[name] = asyncio.create_task(self._ask_curator(name, release, parties))
        await asyncio.wait(poll.under_way.values(), return_when=asyncio.FIRST_COMPLETED)
        poll.may_go_on = poll.take() or asyncio.get_running_loop().time() >= began + LONGEST_WAIT / 2
        answers = self._answers(release, poll)
        if len(answers) < len(parties.curators) and not poll.is_enough:
            raise NotReadyError("not every curator has answered yet", where=f"release {release_id}")
        return answers

    async def pause(self, release_id: str) -> None:
        """Pause before the curators are asked again, unless the last answers were put off, or brought news."""
        poll = self._polls.setdefault(release_id, _Poll())
        if poll.may_go_on:
            poll.may_go_on, poll.attempt = False, 0
        else:
            await pause_after(poll.attempt)
            poll.attempt += 1

    def stop_asking(self, release_id: str) -> None:
        """End the questions about a release; the last answers stay among the statuses."""
        for question in self._polls.pop(release_id, _Poll()).under_way.values():
            question.cancel()

    async def _ask_curator(
        self, name: str, release: ResearcherRelease, parties: PartyLinks
    ) -> curator_pb2.GetProposalResponse | VeiltabError:
        """Return how far a curator is with a release, or why it does not say."""
        poll = self._polls[release.request.release_id]
        try:
            has_answered = isinstance(poll.answers.get(name), curator_pb2.GetProposalResponse)
            seconds = LONGEST_WAIT if has_answered else _FIRST_WAIT
            answer = await parties.ask_curator(name, release, seconds, is_first=not has_answered)
            _check_readable(answer, name)
        except VeiltabError as error:
            return error
        return answer

    def _answers(self, release: ResearcherRelease, poll: _Poll) -> dict[str, curator_pb2.GetProposalResponse]:
        """Record what each curator said last of a release, and return it as `ask_curators` does."""
        statuses, answers, refusals = self.of(release.request.release_id), {}, list[VeiltabError]()
        replies = {name: one for name, one in poll.answers.items() if not isinstance(one, VeiltabError)}
        self._record_figures(release.request.release_id, replies)
        for name, reply in poll.answers.items():
            if isinstance(reply, VeiltabError):
                statuses[f"curator {name}"] = (ReleaseState.REQUESTED, str(reply))
                refusals.append(reply)
                continue
            state = state_from_proto(reply.state)
            statuses[f"curator {name}"] = (state, words_from_proto(reply.waiting_for))
            # A curator whose test of the server failed ends a release that is published, too.
            if state is ReleaseState.DENIED:
                refusals.append(DeniedError(words_from_proto(reply.failure)))
            elif state is ReleaseState.FAILED or (state.unsuccessful and release.spec is None):
                refusals.append(ended_without_result(state, words_from_proto(reply.failure)))
            else:
                answers[name] = reply
        # Of several tables, each has its spec and its owners.
        ready = {} if release.request.tables else _of_all_owners(answers)
        poll.is_enough = bool(ready)
        poll.end = next((one for one in refusals if not isinstance(one, NotReadyError | UnavailableError)), None)
        if refusals and not ready:
            raise poll.end or refusals[-1]
        answers = ready or answers
        states = map(state_from_proto, (answer.state for answer in answers.values()))
        least = min(*states, ReleaseState.UPLOADING, key=_position)
        if least is not release.state:
            self._store.set_state(release.request.release_id, least)
        return answers

    def _record_figures(self, release_id: str, answers: CuratorAnswers) -> None:
        """Record the times and sizes that the curators say, if they are other ones than before."""
        seconds = dict[str, float]()
        for name, one in answers.items():
            seconds |= _seconds_from_proto(one.seconds, f"curator {name}: ")
        server = f"server {self._study.server.name}"
        byte_counts = {f"curator {name} -> {server}": one.bytes_uploaded for name, one in answers.items()}
        left_out = {name: one.left_out for name, one in answers.items() if one.HasField("left_out")}
        if self._recorded.get(release_id) != (figures := (seconds, byte_counts, left_out)):
            self._store.set_measure(release_id, *figures)
            self._recorded[release_id] = figures

    async def ask_server(self, release: ResearcherRelease, answers: CuratorAnswers, parties: PartyLinks) -> Publication:
        """Return what the server published; raise while that is nothing.

        Args:
            answers: what every curator says about it. At first, before any of them sends columns, the server is not
                asked; nor while some of them are ready and others have still to test it: no key leaves before.

        Raises:
            NotReadyError, UnavailableError: nothing is published yet, or the server does not answer.
            VeiltabError: nothing is published, and the release has ended, at the server or at a curator: one that
                says that it is ready says amiss, and hides no end of it.
        """
        release_id = release.request.release_id
        statuses, end = self.of(release_id), self._polls[release_id].end
        who = f"server {self._study.server.name}"
        states = [state_from_proto(one.state) for one in answers.values()]
        furthest = max(map(_position, states))
        self._polls[release_id].looks_at_server += 1
        if self._polls[release_id].looks_at_server == 1 and furthest < _position(ReleaseState.UPLOADING):
            statuses[who] = (ReleaseState.REQUESTED, "")
            raise NotReadyError("nothing was uploaded yet", where=who)
        if ReleaseState.READY in states and not all(state.finished for state in states):
            raise NotReadyError("not every curator has tested the server yet", where=who)
        try:
            answer = await parties.ask_server(release)
        except NotFoundError:
            statuses[who] = (ReleaseState.REQUESTED, "")
            raise end or NotReadyError("nothing was uploaded yet", where=who) from None
        except VeiltabError as error:
            statuses[who] = (ReleaseState.REQUESTED, str(error))
            raise
        state = state_from_proto(answer.state)
        missing = words_from_proto(", ".join(answer.waiting_for))
        statuses[who] = (state, f"waits for the columns {missing}" if missing else words_from_proto(answer.progress))
        if state.unsuccessful:
            raise ended_without_result(state, words_from_proto(answer.failure), where=who)
        if state is not ReleaseState.READY:
            raise end or NotReadyError("the release is not published yet", where=who)
        seconds = _seconds_from_proto({"perturbing": answer.perturbation_seconds}, f"{who}: ")
        self._store.set_measure(release_id, seconds)
        return Publication(
            spec=spec_from_proto(answer.spec),
            salt=answer.salt,
            columns=dict(answer.columns),
            statement=statement_of(answer),
        )


def _of_all_owners(answers: CuratorAnswers) -> dict[str, curator_pb2.GetProposalResponse]:
    """Return the answers of the curators at which a release is ready, if all that have columns in it are among them.

    It is ready at a curator once each has tested the server, so nothing is waited for that another one says.
    """
    ready = {name: one for name, one in answers.items() if state_from_proto(one.state) is ReleaseState.READY}
    columns = [column for one in ready.values() for column in (*one.table.columns, *one.spec.columns)]
    owners = {holder for column in columns for holder in (column.owner, *column.others)}
    return ready if owners and owners <= ready.keys() else {}


def _check_readable(answer: curator_pb2.GetProposalResponse, curator: str) -> None:
    """Refuse what says amiss where a release stands: it is not an answer of this curator's.

    Raises:
        InvalidInputError: names the curator.
    """
    try:
        state_from_proto(answer.state)
        if answer.HasField("spec"):
            release_from_proto(answer.spec)
        if answer.HasField("table"):
            spec_from_proto(answer.table)
    except InvalidInputError as error:
        raise InvalidInputError(error.problem, where=f"curator {curator}", remedy=error.remedy) from None


def planned_specs(answers: CuratorAnswers) -> dict[str, TableSpec]:
    """Return what curators planned for a release of one table, or for one of several, as far as they have."""
    return {
        name: spec_from_proto(answer.table) if answer.HasField("table") else release_from_proto(answer.spec).table(0)
        for name, answer in answers.items()
        if answer.HasField("table") or answer.HasField("spec")
    }


def tests_of(answers: CuratorAnswers, spec: TableSpec) -> dict[str, CuratorsTest]:
    """Return what curators with columns in a release say that their tests of the server showed, as far as they do.

    Raises:
        InvalidInputError: no test of the release can have shown it.
    """
    return {
        name: curators_test_from_proto(answer.receipt, spec, name)
        for name, answer in answers.items()
        if name in spec.owners and answer.HasField("receipt")
    }


def statement_of(answer: curator_pb2.GetProposalResponse | server_release_pb2.GetReleaseResponse) -> SignedText | None:
    """Return what a party stated with its answer; None if that is nothing, or no statement: it is asked again then.

    The certificate of a release needs it, and its result does not.
    """
    with suppress(InvalidInputError):
        return signed_from_proto(answer.statement) if answer.HasField("statement") else None
    return None


def _seconds_from_proto(times: Mapping[str, float], prefix: str) -> dict[str, float]:
    """Return the times that a peer says its steps took, as far as they are times."""
    steps = sorted(step for step, seconds in times.items() if 0 <= seconds < inf)
    return {prefix + words_from_proto(step, _STEP_LENGTH): times[step] for step in steps[:_STEPS]}


def _position(state: ReleaseState) -> int:
    return _ORDER.index(state) if state in _ORDER else len(_ORDER)
