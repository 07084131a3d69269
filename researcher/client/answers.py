"""Questions that a release answers in one call, in the words of `veiltab researcher estimate`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from veiltab.common.core.domain import Domain
from veiltab.common.core.numbers.confidence import CONFIDENCE

if TYPE_CHECKING:
    from veiltab.researcher.analysis.comparisons import Table
    from veiltab.researcher.analysis.result import Analysis
    from veiltab.researcher.estimates.estimation import TableEstimate


class Answers(ABC):
    """Tables that questions about numbers are put to.

    Every method returns an Analysis: `frame()` for pandas, `plot()` for a picture. `given` names an attribute or
    several, whose combinations of categories are the groups. InvalidInputError: an unknown attribute, one without
    numbers, a missing twin, or a parameter out of range; NotReadyError: the release is not ready.
    """

    @abstractmethod
    def domain(self) -> Domain:
        """Return the attributes that have a result, with the study's categories."""

    @abstractmethod
    def table(self, attributes: Sequence[str], *, confidence: float = CONFIDENCE) -> "Table":
        """Return a table of some attributes, measured or from a model."""

    @abstractmethod
    def measured(self, *, confidence: float = CONFIDENCE) -> "tuple[TableEstimate, ...]":
        """Return each set of attributes that was measured as one table, all its runs pooled."""

    def mean(self, attribute: str, *, given: str | Sequence[str] = (), confidence: float = CONFIDENCE) -> "Analysis":
        """Estimate the mean of an attribute by group: release.mean("hours", given="education").frame()."""
        return self._answer(given, confidence, mean=attribute)

    def sum(self, attribute: str, *, given: str | Sequence[str] = (), confidence: float = CONFIDENCE) -> "Analysis":
        """Estimate the sum of an attribute over the respondents of each group."""
        return self._answer(given, confidence, sum=attribute)

    def variance(
        self, attribute: str, *, given: str | Sequence[str] = (), confidence: float = CONFIDENCE
    ) -> "Analysis":
        """Estimate the variance of an attribute by group; one that was rounded takes a table with its twin."""
        return self._answer(given, confidence, variance=attribute)

    def quantile(
        self, share: float, *, of: str, given: str | Sequence[str] = (), confidence: float = CONFIDENCE
    ) -> "Analysis":
        """Estimate a quantile of an attribute by group: release.quantile(.5, of="hours")."""
        return self._answer(given, confidence, quantile=share, of=of)

    def linear(self, formula: str, *, confidence: float = CONFIDENCE) -> "Analysis":
        """Regress a number on numbers and categories, by the moments of every table that was measured.

        release.linear("wage ~ age + education")
        """
        return self._of_all(confidence, linear=formula)

    def correlation(self, first: str, second: str, *, confidence: float = CONFIDENCE) -> "Analysis":
        """Estimate the correlation of two attributes of numbers, by the moments of every table that was measured."""
        return self._of_all(confidence, correlation=(first, second))

    def survival(
        self,
        ending: str,
        *,
        given: str | Sequence[str] = (),
        until: float | None = None,
        confidence: float = CONFIDENCE,
    ) -> "Analysis":
        """Estimate the share without an event by time and group: release.survival("months:died=yes", given="arm").

        With `until` the mean time without it up to that time; with "~ arm + stage" after it a Cox regression.
        """
        return self._answer(given, confidence, survival=ending, until=until)

    def _of_all(self, confidence: float, **asked: Any) -> "Analysis":  # noqa: ANN401
        from veiltab.researcher.questions.question import Question, answer_of_all  # noqa: PLC0415 - analyses

        return answer_of_all(self.measured(confidence=confidence), Question(**asked))

    def _answer(self, given: str | Sequence[str], confidence: float, **asked: Any) -> "Analysis":  # noqa: ANN401
        from veiltab.researcher.questions.question import Question, answer  # noqa: PLC0415 - analyses

        question = Question(given=(given,) if isinstance(given, str) else tuple(given), **asked)
        return answer(question, self.table(question.attributes(self.domain()), confidence=confidence))
