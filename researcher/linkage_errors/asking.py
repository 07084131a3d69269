"""What a release asks of this room: its tables with wrong links undone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.table_result import TableResult
from veiltab.researcher.linkage_errors.corrected import corrected
from veiltab.researcher.linkage_errors.linkage_error import LinkageErrors, parse_linkage_error
from veiltab.researcher.linkage_errors.linked_result import linked_results


def table_with_links(estimate: TableEstimate, wish: LinkageErrors | str, study: Study) -> TableEstimate:
    """Return the estimate of a table with wrong links undone.

    Args:
        asked: the wrong links; a text as parse_linkage_error reads it.

    Raises:
        InvalidInputError: a text that does not parse, or what `corrected` refuses.
    """
    return corrected(estimate, _read(wish, study), _owners(study))


def results_with_links(
    results: Sequence[TableResult], wish: LinkageErrors | str, study: Study
) -> tuple[TableResult, ...]:
    """Return the tables that a model is fitted to, with wrong links to undo; as table_with_links."""
    errors = _read(wish, study)
    if errors is None:
        return tuple(results)
    if any(attribute.has_absent for one in results for attribute in study.domain(one.names).attributes):
        raise InvalidInputError(
            "wrong links are not undone in a model of people who may be absent",
            where="linkage error",
            remedy="Ask for tables that were measured, or leave the linkage error out.",
        )
    return linked_results(results, errors, _owners(study), {one.name: one.attribute.size for one in study.attributes})


def _read(wish: LinkageErrors | str, study: Study) -> LinkageErrors | None:
    """Return the wrong links; their hub is that of the study, if the study links people and no other is named."""
    if wish == "estimated" and study.identity is None:
        raise InvalidInputError(
            "the study joins its tables by ids, so that no links were estimated",
            where="linkage error",
            remedy="Leave it out, or give a share of wrong ids, such as 0.02.",
        )
    errors = parse_linkage_error(wish) if isinstance(wish, str) else wish
    if errors is not None and errors.hub:
        study.curator(errors.hub)
    if errors is None or errors.hub or study.identity is None:
        return errors
    return replace(errors, hub=study.hub)


def _owners(study: Study) -> Mapping[str, str]:
    return {rule.name: rule.owner for rule in study.attributes}
