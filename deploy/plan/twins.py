"""What a question needs that a release has not: second roundings of its numbers, and a table of all that it names.

Without its twin, the mean square of a number cannot be told; without the table, which rows all curators have.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations
from math import isnan

from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.study.file import Study
from veiltab.common.study.missing import joined
from veiltab.researcher.numbers.linear import parse_linear
from veiltab.researcher.numbers.points import numbers_of
from veiltab.researcher.questions.sentence import parse_question


def proposals(study: Study, tables: Sequence[Sequence[str]], question: str) -> tuple[str, ...]:
    """Return how a planned release is to answer a question: a sentence for each twin or table that it lacks.

    Args:
        tables: attributes of each table of the release.
        question: as `veiltab researcher estimate` takes it.

    Raises:
        InvalidInputError: the question is not understood, or is of attributes that are not planned.
    """
    domain = study.domain({name for table in tables for name in table})
    # A question is not read before every number has a twin.
    numbers = [one for one in domain.attributes if one.number]
    twins = [replace(one, name=f"{one.name} (twin)") for one in numbers]
    answer = parse_question(question, Domain(attributes=(*domain.attributes, *twins)))
    model = [one.name for one in parse_linear(answer.linear, domain)] if answer.linear else []
    squared = {answer.variance, *answer.correlation, *model[1:]}
    alone = [one for one in numbers if not any(other.number == one.number and other is not one for other in numbers)]
    sentences = [_proposal(study, one) for one in alone if one.name in squared]
    spokes = _lacking(study, model)
    are_pairs = not any(set(model) <= {*table} for table in tables)
    if are_pairs and any(_lacking(study, pair) != spokes for pair in combinations(model, 2)):
        reason = f"Tables of pairs do not tell whom {joined(sorted(spokes))} may lack"
        sentences.append(f"{reason}: ask for a table of {joined(model)} too.")
    return tuple(sentences)


def _lacking(study: Study, names: Collection[str]) -> set[str]:
    """Return the curators who hold some attributes and may lack people."""
    groups = (rule.holders for rule in study.attributes if rule.name in names and rule.attribute.has_absent)
    return {name for holders in groups for name in holders}


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
