"""Which twins a question needs that a release has not: second roundings, without which a mean square cannot be told."""

from collections.abc import Sequence
from dataclasses import replace
from math import isnan

from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.study.file import Study
from veiltab.researcher.numbers.linear import parse_linear
from veiltab.researcher.numbers.points import numbers_of
from veiltab.researcher.questions.sentence import parse_question


def proposed_twins(study: Study, planned: Sequence[str], question: str) -> tuple[str, ...]:
    """Return how a planned release is to answer a question: a sentence for each twin that it lacks.

    Args:
        planned: attributes of the release.
        question: as `veiltab researcher estimate` takes it.

    Raises:
        InvalidInputError: the question is not understood, or is of attributes that are not planned.
    """
    domain = study.domain(planned)
    # A question is not read before every number has a twin.
    twins = [replace(one, name=f"{one.name} (twin)") for one in domain.attributes if one.number]
    parsed = parse_question(question, Domain(attributes=(*domain.attributes, *twins)))
    explaining = parse_linear(parsed.linear, domain)[1:] if parsed.linear else ()
    squared = {parsed.variance, *parsed.correlation, *(one.name for one in explaining)}
    return tuple(
        _proposal(study, one)
        for one in domain.attributes
        if one.number
        and one.name in squared
        and not any(other.number == one.number and other is not one for other in domain.attributes)
    )


def _proposal(study: Study, attribute: Attribute) -> str:
    needed = f"The question needs the mean square of {attribute.name}, which one rounding does not tell"
    for rule in study.attributes:
        if rule.attribute.number == attribute.number and rule.name != attribute.name:
            return f"{needed}: plan and ask for its twin {rule.name} too, in a table with it."
    owner, _, column = attribute.number.partition("/")
    points = ", ".join(f"{one:.15g}" for one in numbers_of(attribute) if not isnan(one))  # that of missing values
    return (
        f"{needed}. Add its twin to the study file, with its missing values if it has any, and ask for a table with"
        f' both:\n[[attribute]]\nname = "{attribute.name}_again"\nowner = "{owner}"\ncolumn = "{column}"\n'
        f'kind = "number"\ngrid = [{points}]'
    )
