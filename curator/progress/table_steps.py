"""The steps of a release of several tables at one curator; pure functions.

Once every curator has charged the request, each of its tables runs as a release of its own, from the spec onwards (see
veiltab.curator.progress.progress): decided and charged under the request's id. Tables that run a second time are chosen
by the researcher after the first results.
"""

from collections.abc import Mapping

from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import (
    ConflictError,
    DeniedError,
    ExpiredReleaseError,
    InvalidInputError,
    NotReadyError,
    VeiltabError,
)
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec, table_id
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.curator.progress.progress import lacking_charge, next_step
from veiltab.curator.progress.release_record import CuratorRelease, End, Progress, Review, Step, Wait

MOST_TABLES_AT_A_TIME = 8
"""Most tables of a release that run at a time: those of the lowest numbers that are not over, so that no curator waits
for a table that another one has not begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """Where one table of a release stands here, and why it ended without a result, if it did."""

    state: ReleaseState
    failure: str = ""


def request_of_table(request: ReleaseRequest, table: TableSpec) -> ReleaseRequest:
    """Return one table of a request as a request by itself, under the id of the table."""
    attributes = tuple(column.attribute for column in table.columns)
    return replace(request, release_id=table.release_id, attributes=attributes, tables=(), repeats=0)


def table_ids(request: ReleaseRequest) -> list[str]:
    """Return the ids of the releases that the tables of a request run as, at most; none of one table."""
    most = 2 * len(request.tables) if request.repeats else len(request.tables)
    return [table_id(request.release_id, number) for number in range(most)]


def check_choice(release: CuratorRelease, numbers: tuple[int, ...]) -> bool:
    """Return whether a choice of tables is new; refuse one that does not fit what was charged, or another than before.

    Args:
        release: the release as this curator has recorded it.
        numbers: of the tables that are to run a second time.

    Raises:
        InvalidInputError: none can run a second time, too many, or a number that is no table's.
        ConflictError: another choice was recorded.
        NotReadyError: not every curator has charged the release yet.
        ExpiredReleaseError: it ended at its deadline, with the first results.
        DeniedError: the release is over.
    """
    spec = release.several
    if spec is None and release.request.repeats and not release.state.finished:
        raise NotReadyError("the release is not planned yet", where="tables")
    if spec is None or not spec.repeats:
        raise InvalidInputError("no table of this release runs a second time", where="tables")
    if len(numbers) > spec.repeats:
        raise InvalidInputError(f"{spec.repeats} tables may run a second time, not {len(numbers)}", where="tables")
    if list(numbers) != sorted(set(numbers)) or any(number >= len(spec.tables) for number in numbers):
        raise InvalidInputError("these are not the numbers of different tables, in order", where="tables")
    if release.choice is not None:
        if release.choice != numbers:
            raise ConflictError("other tables were chosen before", where=f"release {release.request.release_id}")
        return False
    if release.state is ReleaseState.READY:
        raise ExpiredReleaseError("the deadline passed, and the first results stand", where="tables")
    if release.state.finished:
        raise DeniedError("the release is over", where=f"release {release.request.release_id}")
    if release.state is not ReleaseState.UPLOADING:
        raise NotReadyError("not every curator has charged the release yet", where="tables")
    return True


def next_step_of_tables(
    release: CuratorRelease,
    own: Review,
    peers: tuple[Progress, ...] | VeiltabError,
    tables: Mapping[int, TableState],
    now: float,
) -> Step | Wait | End:
    """Return a curator's next step for a release of several tables.

    Args:
        release: the release as this curator has recorded it.
        own: its progress with the decisions.
        peers: every other curator's progress, or why it is unknown.
        tables: number -> state of the tables that run here, or are over.
        now: Unix seconds.
    """
    spec, are_open = release.several, release.state is ReleaseState.UPLOADING
    if spec and are_open and now > release.request.deadline and _is_whole(spec, tables):
        return Step.FINISH  # the first results stand, with what ran a second time by now
    if are_open and now > release.request.deadline and any(not table.state.finished for table in tables.values()):
        return Wait("the tables end at the deadline")  # each is counted against whom it waited for
    outcome = next_step(release, own, peers, now)
    if isinstance(outcome, End) or spec is None:
        return outcome
    if are_open:  # what the others are needed for is each table's
        return _step_with_tables(release, spec, tables)
    if release.state is not ReleaseState.CHARGED or isinstance(peers, VeiltabError):
        return outcome
    return lacking_charge(peers) or Step.OPEN_TABLES


def _step_with_tables(
    release: CuratorRelease, spec: ReleaseSpec, tables: Mapping[int, TableState]
) -> Step | Wait | End:
    # Where time ran out for a table that ran a second time, at any party, the first results stand.
    late = {number for number in tables if number >= len(spec.tables) and tables[number].state is ReleaseState.EXPIRED}
    for number, table in sorted(tables.items()):
        if table.state.unsuccessful and number not in late:
            why = table.failure or table.state.value
            return End(ReleaseState.FAILED, f"table {', '.join(spec.attributes(number))}: {why}")
    ready = sum(table.state is ReleaseState.READY for table in tables.values())
    if ready + len(late) < len(tables):
        return Wait(f"{ready} of {len(tables)} tables are ready")
    if spec.repeats and release.choice is None:
        return Wait(f"researcher {spec.researcher}: has not chosen the tables that run a second time yet")
    return Step.FINISH


def _is_whole(spec: ReleaseSpec, tables: Mapping[int, TableState]) -> bool:
    """Whether every table has run once."""
    first = [tables.get(number) for number in range(len(spec.tables))]
    return all(table is not None and table.state is ReleaseState.READY for table in first)
