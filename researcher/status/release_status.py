"""How a release stands at a researcher's service, and each of its tables, as a client reads it."""

from collections.abc import Collection, Mapping
from decimal import Decimal

from veiltab.common.core.texts.message_fields import text_from_proto, whole_from_proto, words_from_proto
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import FailedReleaseError, InvalidInputError
from veiltab.common.observe.status import waiting_lines
from veiltab.common.release.messages.release_messages import receipt_from_proto, release_from_proto, state_from_proto
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import MAX_CANARIES, TableSpec
from veiltab.v1 import release_pb2, researcher_pb2

_HEADINGS = ("release", "label", "state", "attributes", "epsilon", "delta")


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """The result of the tests of the server over some columns, as a researcher or an analyst may read it.

    Args:
        curator: whose columns were tested; "" for all together.
        canaries: c, rows that were tested.
        expected: how many change on average.
        sd: the standard deviation of that number.
        passed: whether every count was accepted.
        receipt: the counts; None for an analyst, to whom they would tell of the curators' rows.
    """

    __test__ = False

    curator: str
    canaries: int
    expected: str
    sd: str
    passed: bool
    receipt: Receipt | None = None

    @property
    def tested_by(self) -> str:
        """Who tested, in words."""
        return f"curator {self.curator}" if self.curator else "curators and desk"

    @property
    def expectation(self) -> str:
        """How many change on average, with the standard deviation, for people."""
        return f"{float(self.expected):,.0f} ± {float(self.sd):,.0f}"

    def facts(self) -> dict[str, object]:
        """Return the result for JSON; "curator" is empty where all columns were tested together."""
        if self.receipt is not None:
            return self.receipt.facts()
        return {
            "curator": self.curator,
            "tested_by": self.tested_by,
            "canaries": self.canaries,
            "expected": float(self.expected),
            "sd": float(self.sd),
            "passed": self.passed,
        }

    def sentence(self) -> str:
        """Return the result in words."""
        if self.receipt is not None:
            return self.receipt.sentence()
        where = f"{self.curator}'s columns" if self.curator else "all columns together"
        return f"{where} {'passed' if self.passed else 'failed'}, with {self.canaries:,} canaries"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """The status of one table of a release.

    Args:
        number: of the table, from 0; what runs a second time counts on from the number of tables.
        phase: 1, or 2 for a table that runs a second time.
        release_id: its own.
        attributes: its attributes, in study order; once it is ready, those of its result.
    """

    number: int
    phase: int
    release_id: str
    state: ReleaseState
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status of a release.

    Args:
        label: the researcher's own name for it; may be empty.
        state: where it stands for the researcher.
        study_digest: of the study file under which it was asked for.
        epsilon: what was asked for, as text.
        failure: why it ended without a result; empty otherwise.
        parties: role and name -> (its state, what it waits for).
        spec: the public description; of a release of several tables, once it is ready.
        granted: attributes whose keys were given.
        receipts: what the tests of the server showed: of each curator's columns, then of all together. Empty for a
            release without canaries.
        seconds: step -> seconds; of a release of several tables, of all of them together.
        counts: of the noisy rows of a release of one table, as they travel, if the service has sent them; else empty.
        bytes: link -> bytes, as seconds.
        tables: those of a release of several that are under way or over, by number.
        left_out: curator -> rows of its table that the rules for missing values left out, where the study states them.
        purpose: what the persons who decide were told; may be empty.
        delta: what was asked for, as text; empty for a pure epsilon.
        created: Unix seconds at which it was started; 0 if the service does not say.
    """

    release_id: str
    label: str
    state: ReleaseState
    study_digest: str
    attributes: tuple[str, ...]
    epsilon: str
    failure: str
    parties: dict[str, tuple[ReleaseState, str]]
    spec: ReleaseSpec | None
    granted: tuple[str, ...]
    receipts: tuple[TestResult, ...]
    seconds: dict[str, float]
    counts: bytes = field(default=b"", repr=False)
    bytes: dict[str, int]
    tables: tuple[TableStatus, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    purpose: str = ""
    delta: str = ""
    created: int = 0

    @property
    def progress(self) -> str:
        """How many tables of how many are ready in the phase that is under way; empty for a release of one table."""
        phase = max((table.phase for table in self.tables), default=0)
        tables = [table for table in self.tables if table.phase == phase]
        ready = sum(table.state is ReleaseState.READY for table in tables)
        return f"phase {phase}: {ready} of {len(tables)} tables ready" if tables else ""

    @property
    def advice(self) -> str:
        """What to do where it has ended without a result; empty if there is nothing to say."""
        if not self.state.unsuccessful or not self.label:
            return ""
        return f"It keeps the label {self.label!r}: ask again with another one."

    @property
    def all_tables(self) -> tuple[TableStatus, ...]:
        """The tables of the release; one that has no others is its own table."""
        return self.tables or (self._alone,)

    @property
    def ready_tables(self) -> tuple[TableStatus, ...]:
        """The tables that have a result; of a release of one table, itself, whatever its state."""
        if not self.tables:
            return (self._alone,)
        return tuple(table for table in self.tables if table.state is ReleaseState.READY)

    @property
    def measured_attributes(self) -> tuple[str, ...]:
        """The attributes that have a result, in study order."""
        measured = {name for table in self.ready_tables for name in table.attributes}
        return tuple(name for name in self.attributes if name in measured)

    def needs_model(self, attributes: Collection[str]) -> bool:
        """Whether no table of a release of several has all of some attributes, so that a model says how they go."""
        return bool(self.tables) and not any(set(attributes) <= set(table.attributes) for table in self.ready_tables)

    @property
    def _alone(self) -> TableStatus:
        return TableStatus(number=0, phase=1, release_id=self.release_id, state=self.state, attributes=self.granted)

    def description(self) -> ReleaseSpec:
        """Return the public description.

        Raises:
            FailedReleaseError: there is no result.
        """
        if self.spec is None:
            raise FailedReleaseError(self.failure or "there is no result", where=f"release {self.release_id}")
        return self.spec

    def spec_of(self, table: TableStatus) -> TableSpec:
        """Return the spec of a table.

        Raises:
            FailedReleaseError: there is no result.
        """
        return self.description().table(table.number)

    @property
    def waits(self) -> dict[str, str]:
        """Party -> what the release waits for there; empty once the release has ended, whatever was said before."""
        if self.state.finished:
            return {}
        return {party: reason for party, (_, reason) in sorted(self.parties.items()) if reason}

    @property
    def waiting_lines(self) -> tuple[str, ...]:
        """What the release waits for, party by party, each reason once."""
        return waiting_lines(self.waits)

    @property
    def waiting_for(self) -> str:
        """What the release waits for, as text."""
        return "; ".join(self.waiting_lines)


class ReleaseList(tuple[Status, ...]):
    """Releases, oldest first; a notebook and a terminal show them as a table, a line each."""

    __slots__ = ()

    @property
    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (one.release_id, one.label, one.state.value, ", ".join(one.attributes), one.epsilon, one.delta)
            for one in self
        ]

    def __repr__(self) -> str:
        """Return the table as aligned text."""
        lines = [_HEADINGS, *self._rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        from veiltab.common.web.document import table  # noqa: PLC0415 - not outside notebooks

        return table(_HEADINGS, self._rows)


def release_status_from_proto(answer: researcher_pb2.GetResultResponse) -> Status:
    """Return the status of an answer, or raise InvalidInputError."""
    summary = answer.summary
    return Status(
        release_id=text_from_proto(summary.release_id, "release id"),
        label=words_from_proto(summary.label),
        state=state_from_proto(summary.state),
        study_digest=text_from_proto(summary.study_digest, "study digest"),
        attributes=tuple(text_from_proto(name, "attributes") for name in summary.attributes),
        epsilon=text_from_proto(summary.epsilon, "epsilon"),
        failure=words_from_proto(answer.failure),
        parties={
            words_from_proto(p.party): (state_from_proto(p.state), words_from_proto(p.waiting_for))
            for p in answer.parties
        },
        spec=release_from_proto(answer.spec) if answer.HasField("spec") else None,
        granted=tuple(text_from_proto(name, "granted") for name in answer.granted),
        receipts=tuple(map(_result_from_proto, answer.receipts)),
        seconds={words_from_proto(step): seconds for step, seconds in answer.seconds.items()},
        bytes={words_from_proto(link): number for link, number in answer.bytes.items()},
        tables=tuple(map(_table_from_proto, answer.tables)),
        left_out={text_from_proto(curator, "left out"): rows for curator, rows in answer.left_out.items()},
        purpose=words_from_proto(summary.purpose),
        delta=text_from_proto(summary.delta, "delta"),
        created=whole_from_proto(summary.created, "created"),
        counts=b"" if answer.tables else answer.counts,
    )


def _table_from_proto(message: researcher_pb2.TableStatus) -> TableStatus:
    return TableStatus(
        number=message.number,
        phase=message.phase,
        release_id=text_from_proto(message.release_id, "release id"),
        state=state_from_proto(message.state),
        attributes=tuple(text_from_proto(name, "attributes") for name in message.attributes),
    )


def _result_from_proto(message: release_pb2.Receipt) -> TestResult:
    return TestResult(
        curator=text_from_proto(message.curator, "curator"),
        canaries=whole_from_proto(message.canaries, "canaries"),
        expected=_number_from_proto(message.expected),
        sd=_number_from_proto(message.sd),
        passed=message.passed,
        receipt=receipt_from_proto(message) if message.text else None,
    )


def _number_from_proto(text: str) -> str:
    try:
        number = Decimal(text_from_proto(text, "receipt"))
    except ArithmeticError:
        number = Decimal("NaN")
    if not (number.is_finite() and 0 <= number <= MAX_CANARIES):
        raise InvalidInputError("a number of canaries is not finite, below 0 or too large", where="receipt")
    return str(number)
