"""Questions that a release answers, in the words of `veiltab researcher estimate`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias, TypedDict, Unpack

from veiltab.common.core.domain import Domain
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.naming import check_one_of

if TYPE_CHECKING:
    from veiltab.researcher.analysis.comparisons import Table
    from veiltab.researcher.analysis.result import Analysis
    from veiltab.researcher.estimates.estimation import TableEstimate
    from veiltab.researcher.estimates.independence import IndependenceTest
    from veiltab.researcher.linkage_errors.linkage_error import LinkageErrors

    Linkage: TypeAlias = LinkageErrors | str | None
else:
    Linkage = str | None  # what travels over HTTP


class Absent(StrEnum):
    """What becomes of people of the hub who are absent from another curator's table."""

    LEFT_OUT = "left-out"
    """Estimates are of the people whom every curator of the released table has."""

    SHOWN = "shown"
    """They are a category of each attribute of that curator, and estimates are of all rows of the hub."""


class Choices(TypedDict, total=False):
    """What every question may choose; see `ask`."""

    confidence: float
    absent: str
    linkage_error: Linkage


class Askable(ABC):
    """Tables that questions are put to, each in one sentence: `veiltab.researcher.questions.sentence` has all."""

    @abstractmethod
    def domain(self, *, absent: str = Absent.LEFT_OUT) -> Domain:
        """Return the attributes that have a result, with the study's categories; "absent" among them if it is shown."""

    @abstractmethod
    def table(self, attributes: Sequence[str] = (), **choices: Unpack[Choices]) -> "Table":
        """Return a table of some attributes, measured or from a model; of none, the only table of a release."""

    @abstractmethod
    def measured(self, *, about: Sequence[str] = (), **choices: Unpack[Choices]) -> "tuple[TableEstimate, ...]":
        """Return each set of attributes that was measured as one table, all its runs pooled."""

    def ask(self, question: str, **choices: Unpack[Choices]) -> "Analysis":
        """Answer a question: release.ask("mean of hours by education").frame().

        The words are those of `veiltab researcher estimate`. `frame()` of the answer is for pandas, `plot()` draws.

        Args:
            question: such as "share of wage given age", "linear wage ~ age + education", "survival months:died=yes".
            choices: `confidence` of the intervals; `linkage_error` undoes wrong links and weights for missing ones, as
                for `estimate`; `absent="shown"` shows people who are absent from a table, who are left out otherwise.

        Raises:
            InvalidInputError: the question is not understood, or the release cannot answer it.
            NotReadyError: the release is not ready.
        """
        from veiltab.researcher.questions.question import answer, answer_of_all  # noqa: PLC0415 - not for tables
        from veiltab.researcher.questions.sentence import parse_question  # noqa: PLC0415 - not for tables

        parsed = parse_question(question, self.domain(absent=choices.get("absent", Absent.LEFT_OUT)))
        if parsed.independence:
            remedy = "Ask it by release.test(...), or `veiltab researcher estimate`."
            raise InvalidInputError("a test of independence has no table of numbers", where="question", remedy=remedy)
        if parsed.is_of_all_tables:
            return answer_of_all(self.measured(about=parsed.attributes, **choices), parsed)
        return answer(parsed, self.table(parsed.attributes, **choices))

    def model(self, formula: str, **choices: Unpack[Choices]) -> "Analysis":
        """Fit a model: linear "wage ~ age + education", logistic "wage=high ~ age", loglinear "~ age * wage"."""
        response = formula.partition("~")[0].strip()
        kind = "logistic" if "=" in response else "linear" if response else "loglinear"
        return self.ask(f"{kind} {formula}", **choices)

    def shares(self, of: str, given: str = "", **choices: Unpack[Choices]) -> "Analysis":
        """Estimate shares: release.shares("wage", given="age")."""
        return self.ask(f"share of {of}{given and f' by {given}'}", **choices)

    def totals(self, of: str, **choices: Unpack[Choices]) -> "Analysis":
        """Estimate how many people several groups have: release.totals("age=old & wage=high|top, age=young")."""
        return self.ask(f"total of {of}", **choices)

    def ratio(self, of: str, given: str, **choices: Unpack[Choices]) -> "Analysis":
        """Compare groups with the first: release.ratio("mean of hours", given="age"), or of shares and odds."""
        return self.ask(f"ratio of {of} by {given}", **choices)

    def test(self, question: str, *, level: float = 0.05, absent: str = Absent.LEFT_OUT) -> "IndependenceTest":
        """Test whether attributes are independent: release.test("independence of wage and education").

        Args:
            level: of the test, between 0 and 1.
            absent: "shown" for a category of people who are absent from a table.
        """
        from veiltab.researcher.questions.question import test_of  # noqa: PLC0415 - not for tables
        from veiltab.researcher.questions.sentence import parse_question  # noqa: PLC0415 - not for tables

        parsed = parse_question(question, self.domain(absent=absent))
        return test_of(parsed, self.table(parsed.attributes, confidence=1 - level, absent=absent), level)


def is_shown(absent: str) -> bool:
    """Return whether "absent" is shown as a category."""
    check_one_of("absent", absent, tuple(Absent))
    return absent == Absent.SHOWN


def weighting(linkage_error: Linkage) -> tuple[str, ...]:
    """Return the attributes that tables must have for what is to be done about links."""
    return () if linkage_error is None or isinstance(linkage_error, str) else linkage_error.attributes
