"""How a release stands at its parties: a desk asks each of them, and remembers what they say."""

from collections.abc import Mapping
from math import inf

from veiltab.common.core.message_fields import words_from_proto
from veiltab.common.errors import (
    DeniedError,
    NotFoundError,
    NotReadyError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState, ended_without_result
from veiltab.common.release.wire import spec_from_proto, state_from_proto
from veiltab.common.study.file import Study
from veiltab.researcher.parties import PartyLinks
from veiltab.researcher.store import ResearcherRelease, ResearcherStore
from veiltab.v1 import curator_pb2

Answers = Mapping[str, curator_pb2.GetProposalResponse]
"""Curator -> what it says about a release."""

Statuses = dict[str, tuple[ReleaseState, str]]
"""Role and name of a party -> where a release stands there, and what the party waits for."""

_STEPS = 64
"""Most steps of a peer whose times are kept."""

_STEP_LENGTH = 64
"""Most bytes of the name of such a step."""

_ORDER = [s for s in ReleaseState if not s.unsuccessful]


class Polling:
    """Asks curators and server about releases.

    Args:
        study: the study file.
        store: durable state.
    """

    def __init__(self, study: Study, store: ResearcherStore) -> None:
        self.statuses: dict[str, Statuses] = {}
        self._study = study
        self._store = store
        # Release -> curator -> what was recorded of its last answer: every record waits for the disk.
        self._recorded: dict[str, dict[str, object]] = {}

    def of(self, release_id: str) -> Statuses:
        """Return what the parties said last about a release; what is put there is remembered."""
        return self.statuses.setdefault(release_id, {})

    def forget(self, release_id: str) -> None:
        """Forget what the parties said about a release."""
        self.statuses.pop(release_id, None)
        self._recorded.pop(release_id, None)

    async def ask_curators(
        self, stored: ResearcherRelease, parties: PartyLinks
    ) -> dict[str, curator_pb2.GetProposalResponse]:
        """Make sure every curator has the request; record how far each is.

        Returns:
            What each curator says.

        Raises:
            NotReadyError, UnavailableError: a curator does not answer.
            DeniedError, FailedReleaseError: one ended the release.
        """
        statuses = self.of(stored.request.release_id)
        answers = {}
        unreachable: VeiltabError | None = None
        for name in parties.curators:
            statuses.setdefault(f"curator {name}", (ReleaseState.REQUESTED, "has not answered yet"))
            try:
                answer = await parties.ask_curator(name, stored)
            except (NotReadyError, UnavailableError) as error:
                statuses[f"curator {name}"] = (ReleaseState.REQUESTED, str(error))
                unreachable = error
                continue
            state = state_from_proto(answer.state)
            statuses[f"curator {name}"] = (state, words_from_proto(answer.waiting_for))
            self._record(stored, name, answer)
            if state is ReleaseState.DENIED:
                raise DeniedError(words_from_proto(answer.failure))
            # A curator whose test of the server failed ends a release that is published, too.
            if state is ReleaseState.FAILED or (state.unsuccessful and stored.spec is None):
                raise ended_without_result(state, words_from_proto(answer.failure))
            answers[name] = answer
        if unreachable:
            raise unreachable
        states = map(state_from_proto, (answer.state for answer in answers.values()))
        self._store.set_state(stored.request.release_id, min(*states, ReleaseState.UPLOADING, key=_position))
        return answers

    def _record(self, stored: ResearcherRelease, curator: str, answer: curator_pb2.GetProposalResponse) -> None:
        """Record the times and sizes of a curator's answer, if they are other ones than those of the last."""
        known = self._recorded.setdefault(stored.request.release_id, {})
        figures = (dict(answer.seconds), answer.bytes_uploaded, answer.HasField("left_out"), answer.left_out)
        if known.get(curator) == figures:
            return
        self._store.set_measure(
            stored.request.release_id,
            _seconds_from_proto(answer.seconds, f"curator {curator}: "),
            {f"curator {curator} -> server {self._study.server.name}": answer.bytes_uploaded},
        )
        if answer.HasField("left_out"):
            self._store.set_left_out(stored.request.release_id, curator, answer.left_out)
        known[curator] = figures

    async def ask_server(self, release_id: str, parties: PartyLinks) -> tuple[ReleaseSpec, bytes]:
        """Return the published spec and the salt of its columns' digests; raise while there is none."""
        statuses = self.of(release_id)
        who = f"server {self._study.server.name}"
        try:
            answer = await parties.ask_server(release_id)
        except NotFoundError:
            statuses[who] = (ReleaseState.REQUESTED, "")
            raise NotReadyError("nothing was uploaded yet", where=who) from None
        except VeiltabError as error:
            statuses[who] = (ReleaseState.REQUESTED, str(error))
            raise
        state = state_from_proto(answer.state)
        missing = words_from_proto(", ".join(answer.waiting_for))
        statuses[who] = (state, f"waits for the columns {missing}" if missing else "")
        if state.unsuccessful:
            raise ended_without_result(state, words_from_proto(answer.failure), where=who)
        if state is not ReleaseState.READY:
            raise NotReadyError("the release is not published yet", where=who)
        self._store.set_measure(
            release_id, _seconds_from_proto({"perturbing": answer.perturbation_seconds}, f"{who}: "), {}
        )
        return spec_from_proto(answer.spec), answer.salt


def planned_specs(answers: Answers) -> dict[str, ReleaseSpec]:
    """Return what curators planned for a release of one table, as far as they have."""
    return {name: spec_from_proto(answer.spec) for name, answer in answers.items() if answer.HasField("spec")}


def _seconds_from_proto(told: Mapping[str, float], prefix: str) -> dict[str, float]:
    """Return the times that a peer says its steps took, as far as they are times."""
    steps = sorted(step for step, seconds in told.items() if 0 <= seconds < inf)
    return {prefix + words_from_proto(step, _STEP_LENGTH): told[step] for step in steps[:_STEPS]}


def _position(state: ReleaseState) -> int:
    return _ORDER.index(state) if state in _ORDER else len(_ORDER)
