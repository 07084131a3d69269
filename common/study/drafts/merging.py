"""Makes one study of the drafts of its curators, and says where they contradict one another."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations

from veiltab.common.errors import InvalidInputError
from veiltab.common.study.drafts.draft import Draft
from veiltab.common.study.id_shapes import COMPARE_IDS, TEXT, WHOLE_NUMBERS, can_match, shape_after
from veiltab.common.study.identity_table import NAMED_FIELDS
from veiltab.common.study.members import MOST_ZEROS, NORMALISE_STEPS, check_identification
from veiltab.common.study.problems import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFrame:
    """What a study needs beside the drafts of its curators.

    Args:
        epsilon: the budget of each curator (nats).
        delta: that of the budget; None holds it purely.
        server: name and endpoint of the server.
        curators: name -> endpoint.
        researchers: name -> endpoint.
        hub: the curator to whose rows others link, if drafts have an identity; "" if they have ids.
        alignment: "tokens" or "psi".
    """

    id: str
    title: str
    epsilon: Decimal
    delta: Decimal | None
    server: tuple[str, str]
    curators: Mapping[str, str]
    researchers: Mapping[str, str]
    hub: str = ""
    alignment: str = "tokens"


def conflicts(drafts: Sequence[Draft]) -> tuple[Problem, ...]:
    """Return where valid drafts contradict one another; none if they make a study together."""
    found = [*_few(drafts)]
    pairs = list(combinations(drafts, 2))
    for one, other in pairs:
        found += _conflicts_of_two(one, other)
    steps = missing_steps(drafts)
    if steps:
        found += [_lacks_steps(draft, steps) for draft in drafts if with_steps(draft, steps) != draft]
    else:
        for one, other in pairs:
            found += _cannot_match(one, other)
    return tuple(found)


def missing_steps(drafts: Sequence[Draft]) -> tuple[str, ...]:
    """Return steps of normalisation with which the ids of all drafts match; none if all match, or no steps help."""
    if all(_match(one, other) for one, other in combinations(drafts, 2)):
        return ()
    shapes = [shape for draft in drafts for shape in draft.id_shapes]
    lengths = sorted({len(after) for one in shapes if set(after := shape_after(one, ["digits"])) <= {"0", "9"}})
    zeros = [f"zfill:{length}" for length in lengths if length <= MOST_ZEROS]
    tried = [("integer",), *((step,) for step in zeros), ("digits",), *(("digits", step) for step in zeros)]
    return next((steps for steps in tried if _match_with(drafts, steps)), ())


def with_steps(draft: Draft, steps: Sequence[str]) -> Draft:
    """Return a draft whose ids are normalised by these steps too."""
    return replace(draft, normalise=tuple(dict.fromkeys((*draft.normalise, *_fitting(draft, steps)))))


def merged_tables(
    drafts: Sequence[Draft], frame: StudyFrame
) -> dict[str, Mapping[str, object] | list[Mapping[str, object]]]:
    """Return the tables of the study that drafts without conflicts make, as plain data.

    Curators and attributes stand in the order of the drafts.
    """
    name, endpoint = frame.server
    delta = {} if frame.delta is None else {"delta": frame.delta}
    present = {field for draft in drafts for field, _ in draft.identity}
    fields = [*(one for one in NAMED_FIELDS if one in present), *sorted(one for one in present if ":" in one)]
    identity = {"identity": {"hub": frame.hub, "fields": fields}} if fields else {}
    return {
        "study": {"id": frame.id, "title": frame.title, "alignment": frame.alignment},
        "budget": {"epsilon": frame.epsilon, **delta},
        **identity,
        "server": {"name": name, "endpoint": endpoint},
        "curator": [
            {"name": draft.curator, "endpoint": frame.curators[draft.curator], **_respondents(draft)}
            for draft in drafts
        ],
        "researcher": [{"name": name, "endpoint": endpoint} for name, endpoint in frame.researchers.items()],
        "attribute": [attribute for draft in drafts for attribute in draft.attributes],
    }


def _respondents(draft: Draft) -> dict[str, object]:
    """Return what names the respondents of a draft."""
    if draft.identity:
        return {
            "identity": {name.partition(":")[0]: list(columns) for name, columns in draft.identity},
            "date_order": draft.date_order,
            **({} if draft.first_year is None else {"first_year": draft.first_year}),
        }
    return {
        "id_columns": list(draft.id_columns),
        "normalise": list(draft.normalise),
        "id_shapes": list(draft.id_shapes),
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
    if bool(one.identity) != bool(other.identity):
        yield _conflict(pair, "one has ids and the other an identity", "Draft both with --identity, or both with ids.")
        return
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


def _cannot_match(one: Draft, other: Draft) -> Iterator[Problem]:
    """Yield the id columns of two drafts that cannot match."""
    for place, shapes in enumerate(_shapes(one, other)):
        if not can_match(*shapes):
            columns = f"{one.id_columns[place]} is written as {shapes[0]}, {other.id_columns[place]} as {shapes[1]}"
            yield _conflict(f"{one.curator} and {other.curator}", f"ids cannot match: {columns}", COMPARE_IDS)


def _lacks_steps(draft: Draft, steps: Sequence[str]) -> Problem:
    """Return what to write into a draft so that its ids match those of all others."""
    written = ", ".join(
        f"{column} as {shape_after(shape, draft.normalise)}"
        for column, shape in zip(draft.id_columns, draft.id_shapes, strict=True)
    )
    line = f"normalise = {json.dumps(with_steps(draft, steps).normalise)}"
    return _conflict(draft.curator, f"ids are written in another way than those of others: {written}", f"Write {line}")


def _match(one: Draft, other: Draft) -> bool:
    return all(can_match(*shapes) for shapes in _shapes(one, other))


def _match_with(drafts: Sequence[Draft], steps: Sequence[str]) -> bool:
    """Whether the ids of all drafts match once these steps are added, and no step meets ids that it would refuse."""
    changed = [with_steps(draft, steps) for draft in drafts]
    if any(_contradict(draft.normalise) for draft in changed):
        return False
    shapes = {shape_after(shape, draft.normalise) for draft in changed for shape in draft.id_shapes}
    # Digits of a text may begin with zeros, and whole numbers do not.
    if TEXT in shapes or ("digits" in steps and WHOLE_NUMBERS in shapes):
        return False
    return all(_match(one, other) for one, other in combinations(changed, 2))


def _fitting(draft: Draft, steps: Sequence[str]) -> list[str]:
    """Return the steps that a draft takes: all but digits where whole numbers are made already."""
    return [step for step in steps if step != "digits" or "integer" not in draft.normalise]


def _contradict(steps: Sequence[str]) -> bool:
    """Whether a study file would refuse steps."""
    try:
        check_identification(["id"], steps)
    except InvalidInputError:
        return True
    return False


def _shapes(one: Draft, other: Draft) -> list[tuple[str, str]]:
    """Return how the ids of each pair of id columns are written, once they are normalised."""
    pairs = zip(one.id_shapes, other.id_shapes, strict=False)
    return [(shape_after(first, one.normalise), shape_after(second, other.normalise)) for first, second in pairs]


def _listed(steps: Sequence[str]) -> str:
    return ", ".join(steps) or "not at all"


def _conflict(where: str, problem: str, remedy: str) -> Problem:
    return Problem(line=None, where=where, problem=problem, remedy=remedy)
