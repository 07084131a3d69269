"""A release on this machine whose server cheats: the curators' tests end it before any key leaves."""

import time
from collections.abc import Callable
from contextlib import closing, suppress

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import DeniedError, FailedReleaseError, UnavailableError
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.parties.identity import Role
from veiltab.curator.records.store import CuratorStore
from veiltab.play.demos.cheating_server import Cheat
from veiltab.play.demos.table import RESEARCHER, DemoOptions, ask, prepare
from veiltab.play.local.asking import client_of, progress
from veiltab.play.local.processes import LocalStudy

_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class CuratorOutcome:
    """The end of a release at one curator.

    Args:
        state: of the release there; keys leave in READY only.
        failure: why it failed; empty if it did not.
        receipts: what the curator's tests of the server showed: of its own columns, then of all together.
    """

    curator: str
    state: ReleaseState
    failure: str
    receipts: tuple[Receipt, ...]

    @property
    def is_rejection(self) -> bool:
        """Whether the curator itself found that the server cheats."""
        return not all(receipt.passed for receipt in self.receipts)


@dataclass(frozen=True, kw_only=True)
class CheatOutcome:
    """The end of a release whose server cheats.

    Args:
        seconds: how long it took, from the request on.
    """

    cheat: Cheat
    release_id: str
    curators: tuple[CuratorOutcome, ...]
    seconds: float

    @property
    def is_caught(self) -> bool:
        """Whether a curator's test rejected the server, and the release failed at every curator, so no key left."""
        return any(one.is_rejection for one in self.curators) and all(
            one.state is ReleaseState.FAILED for one in self.curators
        )

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return {
            "server": self.cheat.value,
            "caught": self.is_caught,
            "release": self.release_id,
            "curators": [
                {
                    "curator": one.curator,
                    "state": one.state.value,
                    "failure": one.failure,
                    "receipts": [receipt.facts() for receipt in one.receipts],
                }
                for one in self.curators
            ],
            "seconds": self.seconds,
        }

    def as_text(self) -> str:
        """Return lines for people."""
        lines = [f"The server {self.cheat.meaning}."]
        for one in self.curators:
            lines.append(f"curator {one.curator}: {one.state.value}" + (f", {one.failure}" if one.failure else ""))
            failures = (failure for receipt in one.receipts for failure in receipt.failures)
            lines.extend(f"  {failure.sentence()}" for failure in failures)
        lines.append("caught: no key left a curator" if self.is_caught else "NOT caught")
        return "\n".join(lines)


def run_cheat(cheat: Cheat, options: DemoOptions, say: Callable[[str], None]) -> CheatOutcome:
    """Run a release whose server cheats.

    Args:
        say: called with a line about each step.

    Raises:
        VeiltabError: a party refused something else.
    """
    local, truth = prepare(options, say)
    server = (Role.SERVER, local.study.server.name)
    local.launchers[server] = cheat.launcher
    with local:
        say(f"starting every party as a process of its own, under mutual TLS; the server {cheat.meaning}")
        local.start_all()
        say(f"{RESEARCHER} asks for {', '.join(truth.domain.names)} at epsilon {options.epsilon}")
        began = time.monotonic()
        with client_of(local, RESEARCHER) as client:
            release = ask(client, truth.domain.names, options)
            with suppress(FailedReleaseError, DeniedError):
                release.wait(600, progress(say))
        curators = _ends_at_curators(local, release.id)
        return CheatOutcome(cheat=cheat, release_id=release.id, curators=curators, seconds=time.monotonic() - began)


def _ends_at_curators(local: LocalStudy, release_id: str) -> tuple[CuratorOutcome, ...]:
    """Wait until the release is over at every curator: one may still test when another has rejected the server."""
    end = time.monotonic() + _SECONDS
    while True:
        outcomes = tuple(_at_curator(local, curator.name, release_id) for curator in local.study.curators)
        waiting = [one.curator for one in outcomes if not one.state.finished]
        if not waiting:
            return outcomes
        if time.monotonic() > end:
            raise UnavailableError("the release does not end there", where=f"curator {waiting[0]}")
        time.sleep(0.1)


def _at_curator(local: LocalStudy, name: str, release_id: str) -> CuratorOutcome:
    with closing(CuratorStore(local.state_folder(Role.CURATOR, name) / "curator.sqlite")) as store:
        release = store.releases.release(release_id)
        receipts = store.tests.receipts(release_id)
    return CuratorOutcome(curator=name, state=release.state, failure=release.failure, receipts=receipts)
