"""The releases that a console shows: read from the researcher's service, and kept once they cannot change."""

from collections.abc import Sequence

from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.common.privacy.cards.card import EpsilonCard
from veiltab.common.release.state import ReleaseState, not_ready
from veiltab.common.study.file import Study
from veiltab.researcher.analysis.comparisons import Table
from veiltab.researcher.client.client import Client
from veiltab.researcher.client.release import Release
from veiltab.researcher.console.calculations import Background, Calculations
from veiltab.researcher.report.presentation import card_of
from veiltab.researcher.status.release_status import Status

MOST_CELLS = 100_000
"""Cells of a table that a page shows; beyond, `veiltab researcher estimate`."""

_PATIENCE = 1.0
"""Seconds that a page waits for what is computed in the background."""


class Desk:
    """What the pages read and ask for.

    Args:
        client: of the researcher, or of an analyst.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.calculations = Calculations()
        self._background = Background()
        self._ended: dict[str, Status] = {}
        self._releases: dict[str, Release] = {}

    @property
    def study(self) -> Study:
        """The study file of the console."""
        return self.client.study

    @property
    def may_ask(self) -> bool:
        """Whether the console is the researcher's, who may start releases; an analyst reads them."""
        return self.client.is_owner

    def releases(self) -> tuple[Status, ...]:
        """Return all releases, newest first, without their details."""
        return tuple(reversed(self.client.releases()))

    def last_population(self) -> int | None:
        """Return the number of respondents n of the newest release that is ready; None if none is, or none answers."""
        try:
            ready = (one for one in self.releases() if one.state is ReleaseState.READY)
            status = next((self.status(one.release_id) for one in ready), None)
        except UnavailableError:
            return None
        return None if status is None else status.description().population

    def status(self, name: str) -> Status:
        """Return how a release stands, by id or label; what has ended is asked for once.

        Raises:
            NotFoundError: there is no such release.
            UnavailableError: the service does not answer.
        """
        if name in self._ended:
            return self._ended[name]
        status = self.client.status(name)
        if status.state.finished:
            self._ended[status.release_id] = status
        return status

    def release(self, status: Status) -> Release:
        """Return a release, which keeps its model once that is fitted."""
        return self._releases.setdefault(status.release_id, Release(self.client, status.release_id, continued=True))

    def ready(self, name: str) -> Status:
        """Return the status of a release that has results.

        Raises:
            NotReadyError, DeniedError, FailedReleaseError: it has none, or none yet.
        """
        status = self.status(name)
        if status.state is ReleaseState.READY:
            return status
        reason = status.failure or (f"it waits for {status.waiting_for}" if status.waiting_for else status.progress)
        raise not_ready(
            status.state,
            reason,
            where=status.label or f"release {status.release_id[:12]}",
            remedy="It has no result; ask again under another label."
            if status.state.unsuccessful
            else "Its page shows its steps; look again later.",
        )

    def table(self, status: Status, attributes: Sequence[str], confidence: float, links: str = "") -> Table | None:
        """Return a table of a release, perhaps with wrong links undone; None while the model it comes from is fitted.

        Raises:
            InvalidInputError: an attribute without a result, or more cells than a page shows.
            VeiltabError: as `Release.table`.
        """
        names = self.study.domain(attributes).names
        cells = self.study.domain(names).cells
        if cells > MOST_CELLS:
            raise InvalidInputError(
                f"a table of {', '.join(names)} has {cells:,} cells; a page shows up to {MOST_CELLS:,}",
                where="attributes",
                remedy="Choose fewer attributes.",
            )
        release = self.release(status)
        if not status.needs_model(names):
            return release.table(names, confidence=confidence, linkage_error=links or None)
        key = ("table", status.release_id, names, confidence, links)
        return self._background.get(
            key, lambda: release.table(names, confidence=confidence, linkage_error=links or None), within=_PATIENCE
        )

    def card(self, status: Status) -> EpsilonCard | None:
        """Return who faces which epsilon; None while it is computed."""
        return self._background.get(("card", status.release_id), lambda: card_of(status), within=_PATIENCE)

    def close(self) -> None:
        """End the search that is under way."""
        self.calculations.close()
