"""Makes one study of the drafts of its curators, and says where they contradict one another."""

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import combinations, permutations

from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.drafts.draft import Draft
from veiltab.common.study.form_matching import (
    LOST_DIGITS,
    after,
    digit_groups,
    how_to_match,
    letters,
    lost_digits,
    lost_zeros,
    without_partner,
)
from veiltab.common.study.forms import DECIMALS, TEXT, Forms, rows_of, sentence
from veiltab.common.study.identity_table import NAMED_FIELDS
from veiltab.common.study.members import MOST_ZEROS, NORMALISE_STEPS
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
        hub: the curator whose rows are the rows of every table.
        alignment: "oblivious" or "tokens".
        relay: endpoint of the relay, if there is one.
    """

    id: str
    title: str
    epsilon: Decimal
    delta: Decimal | None
    server: tuple[str, str]
    curators: Mapping[str, str]
    researchers: Mapping[str, str]
    hub: str
    alignment: str = "oblivious"
    relay: str | None = None


def conflicts(drafts: Sequence[Draft]) -> tuple[Problem, ...]:
    """Return where valid drafts contradict one another; none if they make a study together."""
    problems = [*_few(drafts)]
    for one, other in combinations(drafts, 2):
        problems += _conflicts_of_two(one, other)
    if cut := [_lost_digits(draft, rows) for draft in drafts if (rows := sum(map(lost_digits, _forms(draft))))]:
        return (*problems, *cut)
    if without := [_lacks_forms(draft) for draft in drafts if not (draft.identity or draft.forms)]:
        return (*problems, *without)
    steps = missing_steps(drafts)
    if steps and not _match(drafts):
        problems += [_lacks_steps(draft, steps) for draft in drafts if with_steps(draft, steps) != draft]
    else:
        for one, other in combinations(drafts, 2):
            problems += _cannot_match(one, other)
    return tuple(problems)


def remarks(drafts: Sequence[Draft]) -> list[str]:
    """Return which rows of drafts that make a study together nobody can have in common, by how they are written."""
    lines = [
        f"{column} of {draft.curator} has numbers with leading zeros and others that may have lost them:"
        f" {sentence(forms)}; those of one person must be the same text"
        for draft in drafts
        for (column, _), forms in zip(draft.forms, _forms(draft), strict=True)
        if lost_zeros(forms) and not draft.identity
    ]
    for one, other in permutations(drafts, 2):
        for column, own, there in _columns(one, other):
            if alone := without_partner(own, there):
                lines.append(
                    f"{rows_of(alone):,} of {rows_of(own):,} rows of {one.curator} have {column} written as no row of"
                    f" {other.curator}: {sentence(alone)}; there: {sentence(there)}"
                )
    return lines


def missing_steps(drafts: Sequence[Draft]) -> tuple[str, ...]:
    """Return steps of normalisation with which ids of all drafts are written alike; none if they are, or no step helps.

    Steps make ids mean the same, not only match: see `_mean_the_same`.
    """
    parts = [form for draft in drafts for forms in _forms(draft) for form, _ in after(forms, ["digits"])]
    widths = sorted({len(form) for form in parts if form.startswith("0") and digit_groups(form) == (form,)})
    zeros = [f"zfill:{width}" for width in widths if width <= MOST_ZEROS]
    tried = [(), ("integer",), *((step,) for step in zeros), ("digits",), *(("digits", step) for step in zeros)]
    strangers = {steps: _strangers(drafts, steps) for steps in tried if _mean_the_same(drafts, steps)}
    helping = [steps for steps in strangers if not steps or _match([with_steps(draft, steps) for draft in drafts])]
    return min(helping, key=lambda steps: strangers[steps])


def effects(drafts: Sequence[Draft], steps: Sequence[str]) -> list[str]:
    """Say what steps do to the ids of each draft, in rows."""
    lines = []
    for draft in drafts:
        after_ = with_steps(draft, steps).normalise
        for (column, _), forms in zip(draft.forms, _forms(draft), strict=True):
            for form, rows in forms:
                ((new, _),) = after(((form, rows),), after_)
                stay = "stay so" if new == form else f"become {new}"
                lines.append(f"{rows:,} {column} of {draft.curator}, written as {form}, {stay}")
    return lines


def with_steps(draft: Draft, steps: Sequence[str]) -> Draft:
    """Return a draft whose ids are normalised by these steps too, without digits where whole numbers are made."""
    fitting = [step for step in steps if step != "digits" or "integer" not in draft.normalise]
    return replace(draft, normalise=tuple(dict.fromkeys((*draft.normalise, *fitting))))


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
    identity = {"identity": {"fields": fields}} if fields else {}
    return {
        "study": same_fields(frame, ("id", "title", "hub", "alignment")) | floors(frame.epsilon),
        "budget": {"epsilon": frame.epsilon, **delta},
        **identity,
        **({} if frame.relay is None else {"relay": {"endpoint": frame.relay}}),
        "server": {"name": name, "endpoint": endpoint},
        "curator": [
            {"name": draft.curator, "endpoint": frame.curators[draft.curator], **_respondents(draft)}
            for draft in drafts
        ],
        "researcher": [{"name": name, "endpoint": endpoint} for name, endpoint in frame.researchers.items()],
        "attribute": [attribute for draft in drafts for attribute in draft.attributes],
    }


def floors(epsilon: Decimal) -> dict[str, object]:
    """Return what a merged study asks of every release until a person writes otherwise, by the budget's epsilon.

    A limit of a row's epsilon is none of it: releases of many tables are above any that protects, and a person decides.
    """
    return {
        "minimum_noise_split": Decimal("0.25"),
        "minimum_tested": "enough",
        "maximum_pair_epsilon": 3 * max(epsilon, Decimal(1)),
    }


def _respondents(draft: Draft) -> dict[str, object]:
    """Return what names the respondents of a draft."""
    forms = {"forms": {name: dict(one) for name, one in draft.forms}}
    if draft.identity:
        return {
            "identity": {name.partition(":")[0]: list(columns) for name, columns in draft.identity},
            "date_order": draft.date_order,
            **({} if draft.first_year is None else {"first_year": draft.first_year}),
            **(forms if draft.forms else {}),
        }
    return {"id_columns": list(draft.id_columns), "normalise": list(draft.normalise), **forms}


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
    """Yield the id columns of two drafts that have no form in common."""
    if one.identity:
        return
    for column, own, there in _columns(one, other):
        if rows_of(without_partner(own, there)) == rows_of(own):
            yield _conflict(
                f"{one.curator} and {other.curator}",
                f"ids cannot match: {column} is written as {sentence(own)}, by {other.curator} as {sentence(there)}",
                how_to_match(one.curator, own, other.curator, there),
            )


def _lost_digits(draft: Draft, rows: int) -> Problem:
    return _conflict(
        draft.curator, f"{rows:,} ids {LOST_DIGITS}", "Export the column as text from where its digits are whole."
    )


def _lacks_steps(draft: Draft, steps: Sequence[str]) -> Problem:
    """Return what to write into a draft so that its ids match those of all others."""
    columns = ", ".join(
        f"{column} as {sentence(forms)}" for column, forms in zip(draft.id_columns, _forms(draft), strict=True)
    )
    line = f"normalise = {json.dumps(with_steps(draft, steps).normalise)}"
    problem = f"ids are written in another way than those of others: {columns}"
    return _conflict(draft.curator, problem, f"Write into the draft of {draft.curator}: {line}")


def _match(drafts: Sequence[Draft]) -> bool:
    """Return whether some rows of any two drafts can have the same ids."""
    return not any(True for one, other in combinations(drafts, 2) for _ in _cannot_match(one, other))


def _strangers(drafts: Sequence[Draft], steps: Sequence[str]) -> tuple[int, int]:
    """Return the rows that nobody can have in common once steps are added, and drafts in which numbers lost zeros."""
    changed = [with_steps(draft, steps) for draft in drafts]
    alone = sum(
        rows_of(without_partner(own, there))
        for one, other in permutations(changed, 2)
        for _, own, there in _columns(one, other)
    )
    return alone, sum(any(map(lost_zeros, _forms(draft))) for draft in changed)


def _mean_the_same(drafts: Sequence[Draft], steps: Sequence[str]) -> bool:
    """Return whether steps, where they make ids equal, make those of one person equal, as far as forms can say.

    Only what decorates a number may go: zeros before it, where all that are padded have one width; letters that all
    rows of a table share; and signs between groups of digits that all tables have, each with its own length. No step
    may be refused by a row, nor make two ids of one table equal.
    """
    if not steps:
        return True
    try:
        changed = [with_steps(draft, steps) for draft in drafts]
    except InvalidInputError:  # a step that one has already excludes one of these
        return False
    places = range(max(len(draft.forms) for draft in drafts))
    return all(map(_keeps_apart, drafts, changed)) and all(
        _keeps_numbers([forms for draft in drafts for forms in _forms(draft)[place : place + 1]], steps)
        for place in places
    )


def _keeps_apart(draft: Draft, changed: Draft) -> bool:
    """Return whether steps that a draft gets are refused by none of its rows, and make no two of its ids equal."""
    if draft.identity:
        return False
    steps = {step.partition(":")[0].replace("zfill", "integer") for step in {*changed.normalise} - {*draft.normalise}}
    has_texts = any(TEXT in dict(forms) for forms in _forms(changed))
    is_refused = has_texts and ("digits" in steps or "integer" in changed.normalise)
    return not is_refused and (_forms(draft) == _forms(changed) or steps <= {*draft.distinct_after})


def _keeps_numbers(columns: Sequence[Forms], steps: Sequence[str]) -> bool:
    """Return whether steps take from the ids of a column, in all tables, only what decorates one number."""
    forms = [form for column in columns for form, _ in column if form not in {TEXT, DECIMALS}]
    numbers = [form for column in columns for form, _ in after(column, steps) if digit_groups(form) == (form,)]
    padded = {len(form) for form in (*forms, *numbers) if form.startswith("0") and digit_groups(form) == (form,)}
    if len(padded) > 1 or any(form != "9+" and len(form) > max(padded, default=len(form)) for form in numbers):
        return False
    if "digits" not in steps:
        return True
    spelt = [{letters(form) for form, _ in column} for column in columns]
    groups = {tuple(map(len, digit_groups(form))) for form in forms}
    is_one_number = all(len(one) <= 1 for one in groups) or (len(groups) == 1 and "9+" not in digit_groups(forms[0]))
    return is_one_number and all(len(some) == 1 and "a" not in next(iter(some)) for some in spelt)


def _forms(draft: Draft) -> list[Forms]:
    """Return how the ids of each id column are written, once they are normalised."""
    return [after(forms, draft.normalise) for _, forms in draft.forms]


def _columns(one: Draft, other: Draft) -> Iterator[tuple[str, Forms, Forms]]:
    """Yield the columns or fields that name a respondent in two drafts: its name in the first, and both their forms."""
    if one.identity or other.identity:
        both = dict(other.forms)
        yield from ((name, forms, both[name]) for name, forms in one.forms if name in both)
    else:
        pairs = zip(one.id_columns, _forms(one), _forms(other), strict=False)
        yield from pairs


def _lacks_forms(draft: Draft) -> Problem:
    remedy = "Draft it from its table with `veiltab study draft`."
    return _conflict(draft.curator, "forms is not there: how its ids are written", remedy)


def _listed(steps: Sequence[str]) -> str:
    return ", ".join(steps) or "not at all"


def _conflict(where: str, problem: str, remedy: str) -> Problem:
    return Problem(line=None, where=where, problem=problem, remedy=remedy)
