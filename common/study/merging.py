"""Makes one study of the drafts of its curators, and says where they contradict one another."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations

from veiltab.common.study.draft import Draft
from veiltab.common.study.id_shapes import can_match, repair, repair_sentence, shape_after
from veiltab.common.study.members import NORMALISE_STEPS, NUMBER_STEPS
from veiltab.common.study.problems import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFrame:
    """What a study needs beside the drafts of its curators.

    Args:
        id: the study's id.
        title: for people.
        epsilon: the budget of each curator (nats).
        delta: that of the budget; None holds it purely.
        server: name and endpoint of the server.
        curators: name -> endpoint.
        researchers: name -> endpoint.
    """

    id: str
    title: str
    epsilon: Decimal
    delta: Decimal | None
    server: tuple[str, str]
    curators: Mapping[str, str]
    researchers: Mapping[str, str]


def conflicts(drafts: Sequence[Draft]) -> tuple[Problem, ...]:
    """Return where valid drafts contradict one another; none if they make a study together."""
    found = [*_few(drafts)]
    for one, other in combinations(drafts, 2):
        found += _conflicts_of_two(one, other)
    return tuple(found)


def missing_step(drafts: Sequence[Draft]) -> str:
    """Return the step of normalisation with which ids that cannot match can; "" if all can, or if none does it."""
    taken = {step for draft in drafts for step in draft.normalise if step.partition(":")[0] in NUMBER_STEPS}
    pairs = [shapes for one, other in combinations(drafts, 2) for shapes in _shapes(one, other)]
    steps = {repair(*shapes) for shapes in pairs if not can_match(*shapes)}
    return next(iter(steps)) if len(steps) == 1 and taken <= steps else ""


def with_step(drafts: Sequence[Draft], step: str) -> list[Draft]:
    """Return drafts whose ids are all normalised by this step too."""
    return [replace(draft, normalise=tuple(dict.fromkeys((*draft.normalise, step)))) for draft in drafts]


def merged_tables(
    drafts: Sequence[Draft], frame: StudyFrame
) -> dict[str, Mapping[str, object] | list[Mapping[str, object]]]:
    """Return the tables of the study that drafts without conflicts make, as plain data.

    Curators and attributes stand in the order of the drafts.
    """
    name, endpoint = frame.server
    delta = {} if frame.delta is None else {"delta": frame.delta}
    return {
        "study": {"id": frame.id, "title": frame.title},
        "budget": {"epsilon": frame.epsilon, **delta},
        "server": {"name": name, "endpoint": endpoint},
        "curator": [
            {
                "name": draft.curator,
                "endpoint": frame.curators[draft.curator],
                "id_columns": list(draft.id_columns),
                "normalise": list(draft.normalise),
                "id_shapes": list(draft.id_shapes),
            }
            for draft in drafts
        ],
        "researcher": [{"name": name, "endpoint": endpoint} for name, endpoint in frame.researchers.items()],
        "attribute": [attribute for draft in drafts for attribute in draft.attributes],
    }


def _few(drafts: Sequence[Draft]) -> Iterator[Problem]:
    if len(drafts) < 2:
        yield _conflict("", "a study needs two curators or more", "Give the draft of each.")


def _conflicts_of_two(one: Draft, other: Draft) -> Iterator[Problem]:
    """Yield what keeps two drafts from being parts of one study."""
    pair = f"{one.curator} and {other.curator}"
    if one.curator == other.curator:
        yield _conflict(one.curator, "two drafts are of this curator", "Give one draft a curator.")
        return
    for name in one.names:
        if name in other.names:
            yield _conflict(pair, f"both have an attribute {name!r}", "Name it otherwise in one, or leave it out.")
    spelling, other_spelling = ({*draft.normalise} & {*NORMALISE_STEPS} for draft in (one, other))
    if spelling != other_spelling:
        yield _conflict(
            pair,
            f"ids are normalised in two ways: {_listed(one.normalise)}, and {_listed(other.normalise)}",
            "Take the same of strip, casefold and nfc.",
        )
    if len(one.id_columns) != len(other.id_columns):
        yield _conflict(
            pair,
            f"ids have {len(one.id_columns)} and {len(other.id_columns)} columns",
            "Name respondents by the same columns in both tables.",
        )
        return
    for place, shapes in enumerate(_shapes(one, other)):
        if not can_match(*shapes):
            columns = f"{one.id_columns[place]} is written as {shapes[0]}, {other.id_columns[place]} as {shapes[1]}"
            yield _conflict(pair, f"ids cannot match: {columns}", repair_sentence(*shapes))


def _shapes(one: Draft, other: Draft) -> list[tuple[str, str]]:
    """Return how the ids of each pair of id columns are written, once they are normalised."""
    pairs = zip(one.id_shapes, other.id_shapes, strict=False)
    return [(shape_after(first, one.normalise), shape_after(second, other.normalise)) for first, second in pairs]


def _listed(steps: Sequence[str]) -> str:
    return ", ".join(steps) or "not at all"


def _conflict(where: str, problem: str, remedy: str) -> Problem:
    return Problem(line=None, where=where, problem=problem, remedy=remedy)
