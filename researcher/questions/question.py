"""What may be asked of a release, and the analysis that answers it."""

from collections.abc import Mapping, Sequence

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import Table, compare, conditional_shares, contrasts
from veiltab.researcher.analysis.contrasts import Contrast
from veiltab.researcher.analysis.regression import regress
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.analysis.subgroups import Subgroup, total_contrasts, totals
from veiltab.researcher.estimates.estimation import Estimate, TableEstimate
from veiltab.researcher.estimates.independence import IndependenceTest, independence
from veiltab.researcher.estimates.people_present import PresentEstimate
from veiltab.researcher.numbers.correlation import correlation
from veiltab.researcher.numbers.linear import linear
from veiltab.researcher.numbers.means import mean_contrasts, means, sums
from veiltab.researcher.numbers.quantiles import quantiles
from veiltab.researcher.numbers.second_moments import variances
from veiltab.researcher.survival.curves import survival
from veiltab.researcher.survival.follow_up import Ending
from veiltab.researcher.survival.hazards import hazards


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about a release, as `veiltab.researcher.questions.sentence` reads it.

    At most one of shares, totals, a number, a model, a curve and independence is asked for.

    Args:
        attributes: that the question names; none for the only table of a release.
        given: attributes that are conditioned on.
        contrast: how to compare; None asks for the shares, totals, means or coefficients themselves.
        reference: attribute -> its category in the group that others are compared with; empty for the first.
        totals: subgroups that are counted.
        model: the formula of a logistic or log-linear regression, or "".
        mean: the attribute whose mean is asked for, in each group that is given; or "".
        sum: likewise, whose sum.
        variance: likewise, whose variance.
        quantile: of the attribute that is named by `of`, in each group that is given: a share between 0 and 1; None.
        of: the attribute of the quantile.
        linear: the formula of a linear regression, or "".
        correlation: two attributes of numbers, or none.
        survival: the ending of a survival curve in each group that is given, or of a Cox regression; None for none.
        until: up to which time the mean under the curve is asked for; None for the curve.
        independence: of these attributes from the others of the table is tested.
    """

    attributes: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    contrast: Contrast | None = None
    reference: Mapping[str, str] = field(default_factory=dict)
    totals: tuple[Subgroup, ...] = ()
    model: str = ""
    mean: str = ""
    sum: str = ""
    variance: str = ""
    quantile: float | None = None
    of: str = ""
    linear: str = ""
    correlation: tuple[str, ...] = ()
    survival: Ending | None = None
    until: float | None = None
    independence: tuple[str, ...] = ()

    @property
    def number(self) -> str:
        """The attribute whose mean, sum, variance or quantile is asked for; "" if none is."""
        return self.mean or self.sum or self.variance or self.of

    @property
    def is_of_all_tables(self) -> bool:
        """Whether every table of a release is asked: moments come from any of them."""
        return bool(self.linear or self.correlation)

    @property
    def is_of_shares(self) -> bool:
        """Whether shares are asked for, or compared."""
        return not (self.number or self.model or self.totals or self.survival or self.is_of_all_tables)

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the cells of the table is asked for."""
        return self.is_of_shares and not (self.given or self.contrast or self.independence)


def answer(question: Question, table: Table, other: Table | None = None) -> Analysis:
    """Return the analysis that answers a question about one table.

    Args:
        other: the same table of another release, to compare with; None compares nothing with it.

    Raises:
        InvalidInputError: the table cannot answer, or only shares can be compared between releases.
    """
    tables = [table] if other is None else [table, other]
    if any(map(_is_corrected, tables)):
        from veiltab.researcher.linkage_errors.hull import hull_of  # noqa: PLC0415 - not for studies with ids

        return hull_of(lambda some: _answer(question, *some), tables)
    return _answer(question, *tables)


def _is_corrected(table: Table) -> bool:
    return isinstance(table, TableEstimate) and table.terms is None


def _answer(question: Question, table: Table, other: Table | None = None) -> Analysis:
    if other is not None:
        if not question.is_of_shares or question.reference:
            raise InvalidInputError(
                "something else than shares was to be compared between releases",
                where="compare",
                remedy="Leave out the rest.",
            )
        return compare(table, other, question.contrast or Contrast.DIFFERENCE, question.given)
    if question.is_of_all_tables:
        return _answer_of_all([table], question)
    if question.survival:
        return _of_survival(question, question.survival, table)
    if question.number:
        return _of_numbers(question, table)
    if question.model:
        return regress(table, question.model, as_ratios=question.contrast is Contrast.ODDS_RATIO)
    return _of_shares(question, table)


def _of_shares(question: Question, table: Table) -> Analysis:
    """Return totals, or conditional shares, or how they compare."""
    if question.totals:
        if question.contrast:
            return total_contrasts(table, question.contrast, question.totals)
        return totals(table, question.totals)
    if question.contrast:
        return contrasts(table, question.contrast, question.given, question.reference)
    return conditional_shares(table, question.given)


def answer_of_all(tables: Sequence[Table], question: Question) -> Analysis:
    """Return the linear model or the correlation that the tables of a release have the moments of."""
    if any(map(_is_corrected, tables)):
        from veiltab.researcher.linkage_errors.hull import hull_of  # noqa: PLC0415 - not for studies with ids

        return hull_of(lambda some: _answer_of_all(some, question), tables)
    return _answer_of_all(tables, question)


def _answer_of_all(tables: Sequence[Table], question: Question) -> Analysis:
    if question.linear:
        return linear(tables, question.linear)
    return correlation(tables, question.correlation)


def _of_numbers(question: Question, table: Table) -> Analysis:
    """Return the mean, sum, variance or quantile of an attribute by group."""
    if question.quantile is not None:
        return quantiles(table, question.of, question.quantile, question.given)
    if question.contrast:
        return mean_contrasts(table, question.contrast, question.mean, question.given, question.reference)
    of = means if question.mean else sums if question.sum else variances
    return of(table, question.number, question.given)


def _of_survival(question: Question, ending: Ending, table: Table) -> Analysis:
    """Return a survival curve or the mean under it by group, or a Cox regression."""
    if ending.formula is None:
        return survival(table, ending, question.given, question.until)
    return hazards(table, ending, as_ratios=question.contrast is Contrast.RATIO)


def test_of(question: Question, table: Table, level: float) -> IndependenceTest:
    """Return the test whether some attributes of a table are independent of its others.

    Raises:
        InvalidInputError: the question is not a test, or the table comes from a model or has its links corrected.
    """
    if not isinstance(table, Estimate | PresentEstimate) or not question.independence:
        raise InvalidInputError(
            "no single release measured a table of these attributes, so independence cannot be tested",
            where="question",
            remedy="Ask for a release of these attributes as one table.",
        )
    others = [name for name in table.domain.names if name not in question.independence]
    return independence(table, question.independence, others, level=round(level, 12))
