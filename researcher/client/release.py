"""One release at a desk: how it stands, its tables, its rows."""

import secrets
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from veiltab.common.core.domain import Domain
from veiltab.common.core.numbers.confidence import CONFIDENCE
from veiltab.common.errors import NotFoundError, UnavailableError, VeiltabError
from veiltab.common.release.state import ReleaseState, not_ready
from veiltab.common.study.missing import respondents_sentence
from veiltab.researcher.client.askable import Absent, Askable, Linkage, is_shown
from veiltab.researcher.client.connection import Connection
from veiltab.researcher.status.release_status import Status, TableStatus

if TYPE_CHECKING:
    import pandas as pd

    from veiltab.researcher.analysis.comparisons import Table
    from veiltab.researcher.client.released_tables import ReleasedTables
    from veiltab.researcher.drawing.style import Picture
    from veiltab.researcher.estimates.estimation import TableEstimate
    from veiltab.researcher.estimates.table_result import TableResult
    from veiltab.researcher.microdata.synthesis import Microdata
    from veiltab.researcher.model.fitting import Model

_WAIT_SECONDS = 1.0
"""Seconds that the service may wait with an answer; `watch` is shown one so often."""

_LOOK_AGAIN_SECONDS = 0.1
_MANY_TABLES_SECONDS = 0.5
"""Seconds between looks at a release of several tables, each of which tells of all of them."""


class Release(Askable):
    """One release of a client's."""

    def __init__(self, client: Connection, release_id: str, *, continued: bool) -> None:
        self.id = release_id
        self.continued = continued
        self._client = client
        self._ready: Status | None = None
        self._models: dict[str, tuple[Model, tuple[str, ...]]] = {}

    def status(self) -> Status:
        """Return how the release stands."""
        return self._client.status(self.id)

    def certificate(self) -> str:
        """Return the release certificate: who vouches for it, signed; `veiltab verify` checks it offline.

        Raises:
            DeniedError: an analyst asks.
            NotReadyError: the release is not ready.
            UnavailableError: a party that has not signed yet does not answer.
        """
        return self._client.certificate(self.id)

    def wait(self, timeout: float = 600.0, watch: Callable[[Status], None] | None = None) -> Status:
        """Wait until the release is ready.

        Args:
            timeout: seconds to wait; the release itself goes on after them.
            watch: shown every status on the way.

        Raises:
            DeniedError: a curator said no.
            FailedReleaseError: it ended without a result.
            UnavailableError: it is not ready in time; says who is waited for.
        """
        end = time.monotonic() + timeout
        # Who watches is shown at once how the release stands.
        seconds = min(_WAIT_SECONDS, timeout) if watch is None else 0.0
        while True:
            began = time.monotonic()
            status = self._client.status(self.id, seconds=seconds)
            if watch is not None:
                watch(status)
            if status.state is ReleaseState.READY:
                self._ready = status
                return status
            if status.state.unsuccessful:
                raise _not_ready(status)
            if time.monotonic() >= end:
                raise UnavailableError(
                    f"not ready after {timeout:g} s; {status.waiting_for or 'every party is at work'}",
                    where=f"release {self.id}",
                    remedy="The release goes on; run the same command again to keep waiting for it.",
                )
            if seconds:
                # A service that lets nobody wait answers at once.
                pause = _MANY_TABLES_SECONDS if status.tables else _LOOK_AGAIN_SECONDS
                time.sleep(max(0.0, began + pause - time.monotonic()))
            seconds = min(_WAIT_SECONDS, max(0.0, end - time.monotonic()))

    def respondents(self) -> str:
        """Say whom n counts under the study's rules for missing values, and which attributes have a category of them.

        Raises:
            InvalidInputError: the release was asked for under another study file than the client's.
        """
        status = self.status()
        self._client.check_study(status.study_digest, f"release {self.id}")
        return respondents_sentence(self._client.study, status.measured_attributes, status.left_out)

    def domain(self, *, absent: str = Absent.LEFT_OUT) -> Domain:
        """Return the attributes that have a result, with the study's categories; "absent" among them if it is shown.

        Raises:
            NotReadyError: the release is not ready.
            InvalidInputError: the release was asked for under another study file than the client's.
        """
        domain = self._client.study.domain(self._ready_status().measured_attributes)
        return domain if is_shown(absent) else domain.without_absent

    def tables(self) -> tuple[TableStatus, ...]:
        """Return the tables of the release that are under way or over, by number; of one table, itself as number 0."""
        return self.status().all_tables

    def tables_of(self, attributes: Sequence[str] | None = None) -> tuple[TableStatus, ...]:
        """Return the tables that are ready, or those of exactly some attributes: two if the table ran twice.

        Raises:
            NotReadyError: the release is not ready.
            NotFoundError: there is no table of these attributes.
        """
        ready = self._ready_status().ready_tables
        if attributes is None:
            return ready
        names = self._client.study.domain(attributes).names
        having = tuple(one for one in ready if one.attributes == names)
        if not having:
            raise NotFoundError(
                f"no table of the release has exactly {', '.join(names)}",
                where=f"release {self.id}",
                remedy="`veiltab researcher status --json` lists its tables.",
            )
        return having

    def measurements(self) -> "tuple[TableResult, ...]":
        """Return every table as it was measured, by number; one that ran twice twice. It raises as `domain`."""
        return self._released().results()

    def measured(
        self,
        *,
        confidence: float = CONFIDENCE,
        linkage_error: Linkage = None,
        absent: str = Absent.LEFT_OUT,
        about: Sequence[str] = (),
    ) -> "tuple[TableEstimate, ...]":
        """Return each set of attributes that was measured as one table, all its runs pooled; as `estimate` does.

        Args:
            about: attributes that moments of several tables are of. Then all tables are of the people whom every
                curator of these attributes has, so that tables without one of these curators are left out.
        """
        return self._released().measured(about, confidence, linkage_error, absent)

    def estimate(
        self,
        attributes: Sequence[str] | None = None,
        *,
        confidence: float = CONFIDENCE,
        linkage_error: Linkage = None,
        absent: str = Absent.LEFT_OUT,
    ) -> "TableEstimate":
        """Return an estimated joint distribution, of the people whom every curator of the released table has.

        Args:
            attributes: of the table, which is pooled of all tables that have them; by default all that were granted,
                for a release of one table.
            confidence: probability that one cell's interval holds its true fraction.
            linkage_error: wrong links to undo, such as "0.02:0.005", or what `veiltab.links` returns;
                none if not given (docs/linkage-errors.md).
            absent: "shown" for a category of people who are absent from a table; the distribution is then that of all
                rows of the hub.

        Raises:
            NotReadyError, FailedReleaseError: there is no result.
            InvalidInputError: an attribute is not in the release, no table has all of these attributes, several have
                and none is named, or the release was asked for under another study file than the client's.
        """
        tables = self._released()
        if attributes is None:
            return tables.present(tables.only(confidence), linkage_error, absent)
        return tables.estimate(attributes, confidence, linkage_error, absent)

    def table(
        self,
        attributes: Sequence[str] = (),
        *,
        confidence: float = CONFIDENCE,
        linkage_error: Linkage = None,
        absent: str = Absent.LEFT_OUT,
    ) -> "Table":
        """Return a table to analyse: as it was measured, or, if no table of the release has it, from a model of all.

        Of no attributes it is the only table of the release. Analyses mark what a model gives, without an interval.

        Args:
            linkage_error: as for `estimate`; a model takes one share.
            absent: as for `estimate`; a model is of the people whom every curator of these attributes has.

        Raises:
            As `estimate`, but that an attribute is in no table of the release.
        """
        if not attributes:
            return self.estimate(confidence=confidence, linkage_error=linkage_error, absent=absent)
        return self._released().table(attributes, confidence, linkage_error, absent)

    def plot(
        self, attributes: Sequence[str] | None = None, *, confidence: float = CONFIDENCE, absent: str = Absent.LEFT_OUT
    ) -> "Picture":
        """Draw the estimates with their intervals; as `estimate` does. `save` writes the picture."""
        return self.estimate(attributes, confidence=confidence, absent=absent).plot()

    def __repr__(self) -> str:
        """Return the id alone: nothing is asked of the service."""
        return f"Release({self.id!r})"

    def _repr_html_(self) -> str:
        from veiltab.researcher.status.notebook import status_html  # noqa: PLC0415 - not outside notebooks

        return status_html(self.id, self.status)

    def frame(
        self, attributes: Sequence[str] | None = None, *, confidence: float = CONFIDENCE, absent: str = Absent.LEFT_OUT
    ) -> "pd.DataFrame":
        """Return the estimates as a DataFrame, one row a cell; as `estimate` does."""
        from veiltab.researcher.estimates.table import to_frame  # noqa: PLC0415 - not for status and requests

        return to_frame(self.estimate(attributes, confidence=confidence, absent=absent))

    def rows(self) -> "pd.DataFrame":
        """Return the noisy rows as a DataFrame, one column an attribute, in an order of their own at each call.

        Every row is a sampled respondent's with the retention probability, else uniform noise; estimates must invert
        that, as `estimate` does, which also refuses the same. The rows are drawn here from the counts, in a random
        order from the operating system: the released rows came in a random order too, so given the counts both have
        the same law, and the order of either says nothing.
        """
        from veiltab.researcher.estimates.table import rows_frame  # noqa: PLC0415 - not for status and requests

        estimate = self._released().only(CONFIDENCE)
        return rows_frame(estimate.domain, estimate.counts, estimate.study_digest, secrets.token_bytes(32))

    def synthesise(  # noqa: PLR0913 - one argument a choice
        self,
        *,
        rows: int | None = None,
        replicates: int = 0,
        copies: int = 0,
        seed: str | int | None = None,
        attributes: Sequence[str] | None = None,
        linkage_error: Linkage = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> "Microdata":
        """Return microdata: rows drawn from a model of all tables, with the study's categories.

        release.synthesise(replicates=20, seed="census").write("linked.parquet")

        Args:
            rows: of the file; as many as there are respondents if not given. For intervals, ten times as many.
            replicates: weights for intervals (`veiltab.with_replicates`), by so many replays of the release: 20.
            copies: the same as files for packages that combine files, an even number.
            seed: the same seed gives the same rows; a random one if not given.
            attributes: of the rows; all that were asked for if not given.
            linkage_error: wrong links to undo: their share, such as 0.02, or 0.02:0.005 with its standard deviation.
            progress: told how many of how many replays are done; may raise, and so end the work.

        It raises as `table`, and InvalidInputError for numbers out of range.
        """
        from veiltab.researcher.microdata.synthesis import check_size, no_progress, synthesise  # noqa: PLC0415 - not for tables

        check_size(1 if rows is None else rows, replicates, copies)
        status = self._ready_status()
        tables = self._released().results(None, linkage_error)
        return synthesise(
            self._client.study.domain(status.attributes if attributes is None else attributes),
            status,
            tables,
            rows=tables[0].design.population if rows is None else rows,
            replicates=replicates,
            copies=copies,
            seed=secrets.token_hex(8) if seed is None else str(seed),
            progress=progress or no_progress,
        )

    def _released(self) -> "ReleasedTables":
        """Return the tables of a release that is ready; it raises as `_ready_status`."""
        from veiltab.researcher.client.released_tables import ReleasedTables  # noqa: PLC0415 - not for status and requests

        return ReleasedTables(client=self._client, status=self._ready_status(), models=self._models)

    def _ready_status(self) -> Status:
        """Return the status of a release that is ready, under the client's study file.

        Raises:
            NotReadyError, DeniedError, FailedReleaseError: it is not.
            InvalidInputError: it was asked for under another study file.
        """
        status = self._known_status()
        if status.state is not ReleaseState.READY:
            raise _not_ready(status)
        return status

    def _known_status(self) -> Status:
        """Return the status of a release under the client's study file; InvalidInputError if that is another one.

        That of a release which was waited for is known: no result of it changes any more.
        """
        status = self._ready or self.status()
        self._client.check_study(status.study_digest, f"release {self.id}")
        return status


def _not_ready(status: Status) -> VeiltabError:
    reason = status.failure or status.progress
    return not_ready(status.state, reason, where=f"release {status.release_id}", remedy=status.advice)
