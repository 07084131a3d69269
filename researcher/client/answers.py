"""Questions that a release answers in one call, in the words of `veiltab researcher estimate`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from veiltab.common.core.domain import Domain
from veiltab.common.core.numbers.confidence import CONFIDENCE

if TYPE_CHECKING:
    from veiltab.researcher.analysis.comparisons import Table
    from veiltab.researcher.analysis.result import Analysis
    from veiltab.researcher.estimates.estimation import TableEstimate
    from veiltab.researcher.linkage_errors.linkage_error import LinkageErrors

    Linkage: TypeAlias = LinkageErrors | str | None
else:
    Linkage = str | None  # what travels over HTTP

Names: TypeAlias = str | Sequence[str]


class Answers(ABC):
    """Tables that questions about numbers are put to.

    Every method returns an Analysis: `frame()` for pandas, `plot()` for a picture. `given` names an attribute or
    several, whose combinations of categories are the groups. InvalidInputError: an unknown attribute, one without
    numbers, a missing twin, or a parameter out of range; NotReadyError: the release is not ready.
    `linkage_error` undoes wrong links and weights for missing ones, as for Release.estimate.
    """

    @abstractmethod
    def domain(self) -> Domain:
        """Return the attributes that have a result, with the study's categories."""

    @abstractmethod
    def table(
        self, attributes: Sequence[str], *, confidence: float = CONFIDENCE, linkage_error: Linkage = None
    ) -> "Table":
        """Return a table of some attributes, measured or from a model."""

    @abstractmethod
    def measured(self, *, confidence: float = CONFIDENCE, linkage_error: Linkage = None) -> "tuple[TableEstimate, ...]":
        """Return each set of attributes that was measured as one table, all its runs pooled."""

    def mean(  # noqa: PLR0913 - one argument a choice
        self,
        attribute: str,
        *,
        given: Names = (),
        contrast: str = "",
        reference: str = "",
        confidence: float = CONFIDENCE,
        linkage_error: Linkage = None,
    ) -> "Analysis":
        """Estimate the mean of an attribute by group: release.mean("hours", given="education").frame().

        With contrast="difference" or "ratio" each group against the first, or reference="education=none".
        """
        from veiltab.researcher.analysis.contrasts import contrast_of  # noqa: PLC0415 - not for tables

        asked = {"mean": attribute, "contrast": contrast_of(contrast), "reference": reference}
        return self._answer(given, confidence, linkage_error, **asked)

    def sum(
        self, attribute: str, *, given: Names = (), confidence: float = CONFIDENCE, linkage_error: Linkage = None
    ) -> "Analysis":
        """Estimate the sum of an attribute over the respondents of each group."""
        return self._answer(given, confidence, linkage_error, sum=attribute)

    def variance(
        self, attribute: str, *, given: Names = (), confidence: float = CONFIDENCE, linkage_error: Linkage = None
    ) -> "Analysis":
        """Estimate the variance of an attribute by group; one that was rounded takes a table with its twin."""
        return self._answer(given, confidence, linkage_error, variance=attribute)

    def quantile(
        self, share: float, *, of: str, given: Names = (), confidence: float = CONFIDENCE, linkage_error: Linkage = None
    ) -> "Analysis":
        """Estimate a quantile of an attribute by group: release.quantile(.5, of="hours")."""
        return self._answer(given, confidence, linkage_error, quantile=share, of=of)

    def linear(self, formula: str, *, confidence: float = CONFIDENCE, linkage_error: Linkage = None) -> "Analysis":
        """Regress a number on numbers and categories, by the moments of every table that was measured.

        release.linear("wage ~ age + education")
        """
        return self._of_all(confidence, linkage_error, linear=formula)

    def correlation(
        self, first: str, second: str, *, confidence: float = CONFIDENCE, linkage_error: Linkage = None
    ) -> "Analysis":
        """Estimate the correlation of two attributes of numbers, by the moments of every table that was measured."""
        return self._of_all(confidence, linkage_error, correlation=(first, second))

    def survival(
        self,
        ending: str,
        *,
        given: Names = (),
        until: float | None = None,
        confidence: float = CONFIDENCE,
        linkage_error: Linkage = None,
    ) -> "Analysis":
        """Estimate the share without an event by time and group: release.survival("months:died=yes", given="arm").

        With `until` the mean time without it up to that time; with "~ arm + stage" after it a Cox regression.
        """
        return self._answer(given, confidence, linkage_error, survival=ending, until=until)

    def _of_all(self, confidence: float, linkage_error: Linkage, **asked: Any) -> "Analysis":  # noqa: ANN401 - the fields of a question
        from veiltab.researcher.questions.question import Question, answer_of_all  # noqa: PLC0415 - not for tables

        return answer_of_all(self.measured(confidence=confidence, linkage_error=linkage_error), Question(**asked))

    def _answer(self, given: Names, confidence: float, links: Linkage, **asked: Any) -> "Analysis":  # noqa: ANN401 - the fields of a question
        from veiltab.researcher.questions.question import Question, answer  # noqa: PLC0415 - not for tables

        question = Question(given=(given,) if isinstance(given, str) else tuple(given), **asked)
        names = question.attributes(self.domain())
        return answer(question, self.table(names, confidence=confidence, linkage_error=links))


def weighting(linkage_error: Linkage) -> tuple[str, ...]:
    """Return the attribute by which tables are weighted, or none."""
    rates = None if linkage_error is None or isinstance(linkage_error, str) else linkage_error.rates
    return () if rates is None else (rates.attribute,)
