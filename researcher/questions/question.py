"""What may be asked of a table in one sentence, and the analysis that answers it."""

from collections.abc import Sequence
from dataclasses import dataclass

from veiltab.common.core.domain import Domain
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import Table, compare, conditional_shares, contrasts
from veiltab.researcher.analysis.contrasts import Contrast
from veiltab.researcher.analysis.formula import parse_formula
from veiltab.researcher.analysis.regression import regress
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.analysis.subgroups import parse_subgroup, total_contrasts, totals
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.numbers.correlation import correlation
from veiltab.researcher.numbers.linear import linear
from veiltab.researcher.numbers.means import mean_contrasts, means, sums
from veiltab.researcher.numbers.points import twin_of
from veiltab.researcher.numbers.quantiles import quantiles
from veiltab.researcher.numbers.second_moments import variances
from veiltab.researcher.survival.curves import survival
from veiltab.researcher.survival.follow_up import parse_ending
from veiltab.researcher.survival.hazards import hazards

_OF_NUMBERS = ("mean", "sum", "variance", "of")
"""Fields that name an attribute of numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about a table, as the options of `veiltab researcher estimate` put it.

    Shares, totals, a mean, a sum and a model exclude one another; a contrast says how shares, totals or means compare.

    Args:
        given: attributes that are conditioned on.
        contrast: how to compare; None asks for the shares, totals, means or coefficients themselves.
        reference: the group that others are compared with, as a subgroup; "" for the first.
        totals: subgroups that are counted, such as "sex=f & age=old".
        model: the formula of a regression, or "".
        mean: the attribute whose mean is asked for, in each group that is given; or "".
        sum: likewise, whose sum.
        variance: likewise, whose variance.
        quantile: of the attribute that is named by `of`, in each group that is given: a share between 0 and 1; None.
        of: the attribute of the quantile.
        linear: the formula of a linear regression, or "".
        correlation: two attributes of numbers, or none.
        survival: "time:event=category" of a survival curve in each group that is given, with "~ terms" of a Cox
            regression; or "".
        until: up to which time the mean under the curve is asked for; None for the curve.

    Raises:
        InvalidInputError: parts that do not go together.
    """

    given: tuple[str, ...] = ()
    contrast: Contrast | None = None
    reference: str = ""
    totals: tuple[str, ...] = ()
    model: str = ""
    mean: str = ""
    sum: str = ""
    variance: str = ""
    quantile: float | None = None
    of: str = ""
    linear: str = ""
    correlation: tuple[str, ...] = ()
    survival: str = ""
    until: float | None = None

    def __post_init__(self) -> None:
        if (self.quantile is None) != (not self.of):
            raise InvalidInputError("quantile and of go together", where="quantile", remedy="Say of which attribute.")
        of_numbers = [name for name in _OF_NUMBERS if getattr(self, name)]
        if self.until is not None and not self.survival:
            raise InvalidInputError("until stands without survival", where="until", remedy="Say of which event.")
        shares = (
            ("given", () if of_numbers or self.survival else self.given),
            ("total", self.totals),
            ("model", self.model),
            ("linear", self.linear),
            ("correlation", self.correlation),
            ("survival", self.survival),
        )
        kinds = [*of_numbers, *(name for name, part in shares if part)]
        if len(kinds) > 1:
            raise InvalidInputError(f"{' and '.join(kinds)} do not go together", remedy="Ask one after the other.")
        if of_numbers and self.contrast and not self.mean:
            raise InvalidInputError(
                f"{'a quantile' if self.of else f'a {of_numbers[0]}'} is not compared here",
                where=of_numbers[0],
                remedy="Leave out the contrast, or compare means.",
            )
        if self.reference and not (self.given and self.contrast):
            raise InvalidInputError(
                "a reference was given without groups to compare",
                where="reference",
                remedy="Name the groups and how to compare.",
            )
        if self.model and self.contrast not in {None, Contrast.ODDS_RATIO}:
            raise InvalidInputError(
                "a model gives coefficients, or odds ratios", where="model", remedy="Leave out the other contrast."
            )

    @property
    def number(self) -> str:
        """The attribute whose mean, sum, variance or quantile is asked for; "" if none is."""
        return self.mean or self.sum or self.variance or self.of

    @property
    def is_of_all_tables(self) -> bool:
        """Whether every table of a release is asked: moments come from any of them."""
        return bool(self.linear or self.correlation)

    @property
    def names_attributes(self) -> bool:
        """Whether `attributes` says which table is asked."""
        return bool(self.number or self.model or self.totals or self.survival)

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the cells of the table is asked for."""
        return self == Question()

    def attributes(self, domain: Domain) -> tuple[str, ...]:
        """Return the attributes that the question names whole; none for shares, which name only groups.

        Args:
            domain: the attributes that may be named.

        Raises:
            InvalidInputError: the model or a total does not parse.
        """
        if self.number:
            (attribute,) = domain.subset([self.number]).attributes
            twins = (twin_of(attribute, domain).name,) if self.variance else ()
            return tuple(dict.fromkeys((*self.given, self.number, *twins)))
        if self.survival:
            ending = parse_ending(self.survival, domain)
            explaining = ending.formula.attributes if ending.formula else ()
            return tuple(dict.fromkeys((*self.given, *explaining, ending.time, ending.event)))
        named = {name for text in self.totals for name in parse_subgroup(text, domain)}
        if self.model:
            formula = parse_formula(self.model, domain)
            named = {formula.response, *formula.attributes}
        return tuple(name for name in domain.names if name in named)


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
        if question.names_attributes or question.is_of_all_tables or question.reference:
            raise InvalidInputError(
                "something else than shares was to be compared between releases",
                where="compare",
                remedy="Leave out the rest.",
            )
        return compare(table, other, question.contrast or Contrast.DIFFERENCE, question.given)
    if question.is_of_all_tables:
        return _answer_of_all([table], question)
    if question.survival:
        return _of_survival(question, table)
    if question.number:
        return _of_numbers(question, table)
    if question.model:
        return regress(table, question.model, as_ratios=question.contrast is Contrast.ODDS_RATIO)
    return _of_shares(question, table)


def _of_shares(question: Question, table: Table) -> Analysis:
    """Return totals, or conditional shares, or how they compare."""
    if question.totals:
        subgroups = [parse_subgroup(text, table.domain) for text in question.totals]
        return total_contrasts(table, question.contrast, subgroups) if question.contrast else totals(table, subgroups)
    if question.contrast:
        return contrasts(table, question.contrast, question.given, _reference(question, table))
    return conditional_shares(table, question.given)


def _reference(question: Question, table: Table) -> dict[str, str]:
    """Return the category of each attribute in the group of reference."""
    named = parse_subgroup(question.reference, table.domain) if question.reference else {}
    several = [name for name, categories in named.items() if len(categories) > 1]
    if several:
        raise InvalidInputError(f"the reference has several categories of {several[0]}", where="reference")
    return {name: one for name, (one, *_) in named.items()}


def answer_of_all(tables: Sequence[Table], question: Question) -> Analysis:
    """Return the linear model or the correlation that the tables of a release have the moments of."""
    if any(map(_is_corrected, tables)):
        from veiltab.researcher.linkage_errors.hull import hull_of  # noqa: PLC0415 - not for studies with ids

        return hull_of(lambda some: _answer_of_all(some, question), tables)
    return _answer_of_all(tables, question)


def _answer_of_all(tables: Sequence[Table], question: Question) -> Analysis:
    if question.given or question.contrast:
        raise InvalidInputError("groups are not compared here", where="given", remedy="Leave them out.")
    if question.linear:
        return linear(tables, question.linear)
    return correlation(tables, question.correlation)


def _of_numbers(question: Question, table: Table) -> Analysis:
    """Return the mean, sum, variance or quantile of an attribute by group."""
    if question.quantile is not None:
        return quantiles(table, question.of, question.quantile, question.given)
    if question.contrast:
        return mean_contrasts(table, question.contrast, question.mean, question.given, _reference(question, table))
    of = means if question.mean else sums if question.sum else variances
    return of(table, question.number, question.given)


def _of_survival(question: Question, table: Table) -> Analysis:
    """Return a survival curve or the mean under it by group, or a Cox regression."""
    ending = parse_ending(question.survival, table.domain)
    if ending.formula is None:
        if question.contrast:
            raise InvalidInputError(
                "curves are not compared here", where="survival", remedy="Write ~ and attributes for hazard ratios."
            )
        return survival(table, ending, question.given, question.until)
    if question.given or question.until is not None or question.contrast not in {None, Contrast.RATIO}:
        raise InvalidInputError(
            "a Cox regression gives coefficients, or hazard ratios",
            where="survival",
            remedy="Leave out the groups, the end and any contrast but the ratio.",
        )
    return hazards(table, ending, as_ratios=question.contrast is Contrast.RATIO)
