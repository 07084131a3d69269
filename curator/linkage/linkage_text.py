"""A linkage as text and as a picture: which keys linked how many rows, and how good the links are by estimate."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import ceil, floor, sqrt

from markupsafe import Markup

from veiltab.common.command.cli import json_text
from veiltab.common.core.numbers.confidence import CONFIDENCE, squared_quantile
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.ladder import Part, Pass
from veiltab.common.linkage.quality import Estimate, wrong_in_sample
from veiltab.common.linkage.self_match import MOST_SHARE
from veiltab.common.study.file import Study
from veiltab.common.study.form_matching import without_partner
from veiltab.common.study.forms import FEWEST_ROWS, rows_of
from veiltab.common.study.identity_table import absent_fields
from veiltab.common.study.members import CuratorMember
from veiltab.curator.linkage.linkage_report import LinkageReport

_WIDTH, _ROW, _LEFT, _RIGHT = 900, 26, 430, 170
_SVG = Markup(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-family="sans-serif"'
    ' font-size="13"><title>The ladder of keys</title><desc>{text}</desc>'
    '<rect class="ground" width="{width}" height="{height}" fill="#fff"/>{parts}</svg>\n'
)
_BAR = Markup('<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="16" fill="{colour}"/>')
_TEXT = Markup('<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{text}</text>')
_COUNTED, _LEFT_OUT = ("bar", "#1b6ca8"), ("soft", "#777")
"""How pages call the bars of keys that run and of others, and their colours elsewhere."""


_HARDLY_ANY = 0.05
_NONE: Mapping[str, str] = {}

NOBODY = (
    "No row is linked. Compare the identity columns and date_order in the study file with the tables: `veiltab curator"
    " check` shows what each field looks like."
)
"""What is said where no row is linked."""

INDEPENDENT = (
    "Errors of names, date and postcode are taken as independent: people who move and change their name at once, and"
    " rows with many errors beside rows with few, make the recall too high."
)
"""What the estimated recall rests on."""


def own_words(study: Study, name: str) -> tuple[Mapping[str, Sequence[str]], Mapping[str, str], Sequence[str]]:
    """Return what `linkage_text` says of a study: `categories`, `lacking` and `unlike`."""
    categories = {rule.name: rule.attribute.categories for rule in study.attributes_of(name)}
    if study.identity is None:
        return categories, _NONE, ()
    members = {one: study.curator(one) for one in (name, study.hub)}
    absent = absent_fields(study.identity, members.values())
    lacking = {key: f"needs {field}, which {who} lacks" for who, field, keys in absent for key in keys}
    return categories, lacking, tuple(_unlike(study.identity.number_beside, *members.values()))


def _unlike(number: str, own: CuratorMember, *hub: CuratorMember) -> Iterator[str]:
    """Yield how many rows of a curator write the number that no key takes as no row of the other one does."""
    for one, other in zip((own, *hub), (*hub, own), strict=True):
        forms, there = dict(one.forms).get(number, ()), dict(other.forms).get(number, ())
        rows = rows_of(without_partner(forms, there)) if there else 0
        if rows >= FEWEST_ROWS:
            yield f"{rows:,} of {rows_of(forms):,} rows of {one.name} write {number} as no row of {other.name} does"


def linkage_text(
    report: LinkageReport,
    categories: Mapping[str, Sequence[str]],
    lacking: Mapping[str, str] = _NONE,
    unlike: Sequence[str] = (),
) -> str:
    """Return a report for people.

    Args:
        categories: attribute -> its categories.
        lacking: key -> the field that it needs and this curator or the hub lacks, as text.
        unlike: what makes the number that no key takes differ in right links, as text.
    """
    return "\n".join(_lines(report, categories, lacking, unlike))


def linkage_json(
    report: LinkageReport,
    categories: Mapping[str, Sequence[str]],
    lacking: Mapping[str, str] = _NONE,
    unlike: Sequence[str] = (),
) -> dict[str, object]:
    """Return it for programs; see `linkage_text`."""
    quality = report.quality
    wrong, recall = (None, None) if quality is None else quality
    return {
        "role": "hub" if report.is_hub else "spoke",
        **same_fields(report, ("rows", "hub_rows", "links", "incomplete", "placebo_rows")),
        "ties": None if report.is_hub else report.ties,
        "passes": [
            {
                **same_fields(one, ("key", "runs", "linked", "left", "placebo")),
                "self_match": one.matches / report.hub_rows,
                "lacks": lacking.get(one.key),
            }
            for one in report.passes
        ],
        "precision_estimated": None if wrong is None else _estimate(wrong.precision),
        "recall_estimated": None if recall is None else _estimate(recall),
        "precision_by_number": None if unlike or report.written_otherwise else tested_json(*report.by_number),
        "number_written_otherwise": [asdict(one) for one in report.written_otherwise],
        "links_by_dominating_values": report.crowd[0],
        "chance_estimated": None if wrong is None else wrong.chance,
        "match_rates": {
            rate.attribute: [
                {"category": name, "rows": rows, "linked": linked}
                for name, rows, linked in zip(categories[rate.attribute], rate.rows, rate.linked, strict=False)
            ]
            for rate in report.rates
            if len(categories.get(rate.attribute, ())) >= len(rate.rows)
        },
    }


def tested_json(tested: int, wrong: int) -> dict[str, float] | None:
    """Return the precision of links that were tested, with its exact interval of 95 %; None if none was."""
    if not tested:
        return None
    share, low, high = wrong_in_sample(wrong, tested, CONFIDENCE)
    return {"tested": tested, "wrong": wrong, "value": 1 - share, "low": 1 - high, "high": 1 - low}


def tested_text(tested: int, wrong: int) -> str:
    """Return it in words; the ends of the interval are rounded outwards."""
    share, low, high = wrong_in_sample(wrong, tested, CONFIDENCE)
    ends = f"{floor((1 - high) * 1e4) / 1e4:.4f} to {ceil((1 - low) * 1e4) / 1e4:.4f}"
    return f"{wrong:,} of {tested:,} are wrong, so the precision is {1 - share:.4f} (exact interval of 95%: {ends})"


def _estimate(estimate: Estimate) -> dict[str, float]:
    return {"value": estimate.value, "sd": estimate.sd}


def _lines(
    report: LinkageReport, categories: Mapping[str, Sequence[str]], lacking: Mapping[str, str], unlike: Sequence[str]
) -> Iterator[str]:
    role = "the hub" if report.is_hub else f"a spoke of a hub with {report.hub_rows:,} rows"
    yield f"This is {role}; its table has {report.rows:,} rows."
    if report.links is not None:
        yield f"{report.links:,} rows are linked."
    yield ""
    width = max(len(one.key) for one in report.passes)
    yield f"{'':>4}{'key':<{width}}  {'self-match':>10}  {'linked':>10}  {'left':>10}"
    for number, one in enumerate(report.passes, 1):
        share = f"{one.matches / report.hub_rows:.3%}"
        if one.key in lacking:
            yield f"{number:>2}  {one.key:<{width}}  {share:>10}  not here: {lacking[one.key]}"
        elif not one.runs:
            yield f"{number:>2}  {one.key:<{width}}  {share:>10}  does not run: too many rows of the hub agree"
        else:
            yield f"{number:>2}  {one.key:<{width}}  {share:>10}  {_count(one.linked):>10}  {_count(one.left):>10}"
    yield from _why_not(report, lacking)
    if report.incomplete:
        yield f"{report.incomplete:,} more rows link, and are left out: they, or the hub's, miss an attribute's value."
    if report.ties:
        yield f"{report.ties:,} rows tied with another one of this table and are not linked; remove duplicates."
    yield ""
    yield from quality_lines(report, unlike, lacking)
    for rate in report.rates:
        names = categories.get(rate.attribute, ())
        if len(names) >= len(rate.rows):
            yield f"linked rows in each category of {rate.attribute}, for this curator's eyes:"
            for name, rows, linked in zip(names, rate.rows, rate.linked, strict=False):
                yield f"    {name}: {linked:,} of {rows:,}" + (f" ({linked / rows:.1%})" if rows else "")


def quality_lines(
    report: LinkageReport, unlike: Sequence[str] = (), lacking: Mapping[str, str] = _NONE
) -> Iterator[str]:
    """Yield how good the links are by estimate, and what looks like a mistake; see `linkage_text`."""
    quality = report.quality
    if report.is_hub:
        yield "The hub does not learn whom it is linked with; each spoke estimates how good its links are."
        return
    if quality is None:
        yield NOBODY
        return
    if swapped := _swapped_dates(report):
        yield (
            f"The key {swapped!r}, which swaps names, or day and month, links more rows than all of whole dates:"
            " compare given, family and date_order in the study file with the tables of both curators."
        )
    wrong, recall = quality
    yield from _precision_lines(report, wrong.precision, unlike)
    chance = f"{wrong.by_chance:.1f} of the links are taken as wrong by chance"
    if not report.placebo_rows:
        yield f"{chance}, as no rows ran with moved dates; `placebo = true` in the study file counts them."
    else:
        found_by = sum(one.placebo or 0 for one in report.passes)
        yield f"{chance}: of {report.placebo_rows:,} rows with moved dates {found_by:,} found a row of the hub."
    names_and_date, all_four = (report.agreed or (0, 0))[1::-1]
    if all_four < _HARDLY_ANY * names_and_date:
        yield (
            f"Of {names_and_date:,} linked pairs whose names and birth date agree {all_four:,} agree on the postcode:"
            " compare how both tables write it, such as 1234 here and AB 1234 there. Keys with it link hardly anybody."
        )
    if recall is None and report.agreed:
        yield "estimated recall: unknown; no linked pair agrees on all of given name, family name, date and postcode."
    elif recall is None:
        yield "estimated recall: unknown; it takes given name, family name, birth date and postcode at both curators."
    else:
        yield f"estimated recall: {recall.value:.3f} (standard deviation {recall.sd:.3f}). {INDEPENDENT}"
        if held := " or ".join(_held_fields(report, lacking)):
            yield (
                f"The recall leaves out people whose {held} name is written otherwise in the other table, such as Ueli"
                " and \u00dcli, as every key that runs takes letters of it: it may be far too high."
            )


def _held_fields(report: LinkageReport, lacking: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of which every key that runs takes letters, so that no link shows who is written otherwise."""
    keys = [Pass(1, one.key) for one in report.passes if one.runs and one.key not in lacking]
    for name in ("given", "family"):
        letters = [{part.field for parts in key.parts for part in parts if part.cut != "sound"} for key in keys]
        if all(name in fields and key.deletion != name for fields, key in zip(letters, keys, strict=True)):
            yield name


def _precision_lines(report: LinkageReport, precision: Estimate, unlike: Sequence[str]) -> Iterator[str]:
    yield f"estimated precision: {precision.value:.4f} (standard deviation {precision.sd:.4f})"
    (apart, tested, differ), otherwise = report.crowd, report.written_otherwise
    if apart:
        by_number = f" The number that no key takes differs in {differ:,} of {tested:,} of them." if tested else ""
        yield (
            f"links that stand apart: {apart:,}. Their key has a value that far more rows share than any other, such as"
            " 1 January or a name for the unnamed, so they may be of strangers, and no row with moved dates shows it."
            f"{by_number} The file for a researcher takes half of them as wrong, give or take half. `veiltab curator"
            " check` names the values; missing_values and default_dates in the study file take them out of keys."
        )
    forms = [f"it differs in {one.differ:,} of {one.tested:,} pairs with {one.form} here" for one in otherwise]
    if reasons := [*unlike, *forms]:
        yield f"The number that no key takes does not say how many links are wrong: {'; '.join(reasons)}."
    elif report.by_number[0]:
        yield f"by a number that no key takes, of compared pairs that both have one: {tested_text(*report.by_number)}"


def _why_not(report: LinkageReport, lacking: Mapping[str, str]) -> Iterator[str]:
    """Yield why keys do not run, and why they may link nobody."""
    if any(not one.runs for one in report.passes):
        yield (
            f"A key runs where at most {float(MOST_SHARE):.1%} of the hub's rows agree with another one, and the wrong"
            " links that are foreseen stay below the cap: `veiltab curator check` at the hub names values, such as"
            " UNKNOWN or a guessed date, that too many rows share."
        )
    for field in _silent_fields(report, lacking):
        yield (
            f"No key with {field} links a row, and later ones without it do: compare how both tables write it, such as"
            " 01234 or 2 here and AB 1234 or f there."
        )


def _silent_fields(report: LinkageReport, lacking: Mapping[str, str]) -> Iterator[str]:
    """Yield the fields that seem to be written in two ways: keys without them find what those with them missed."""
    able = [one for one in report.passes if one.runs and one.key not in lacking]
    steps = [(Pass(1, one.key).fields, one.linked or 0) for one in able]
    for name in sorted(frozenset[str]().union(*(fields for fields, _ in steps))):
        first = next(place for place, (fields, _) in enumerate(steps) if name in fields)
        later = sum(linked for fields, linked in steps[first:] if name not in fields)
        if not any(linked for fields, linked in steps if name in fields) and 2 * later > sum(n for _, n in steps):
            yield name


def _swapped_dates(report: LinkageReport) -> str:
    """Return a key that takes day and month in either order and links more than all keys of whole dates; "" if none."""
    swaps = (Part("birth", "day"), Part("birth", "month"))
    steps = [(Pass(1, one.key).parts, one.linked or 0, one.key) for one in report.passes if one.runs]
    whole = sum(linked for parts, linked, _ in steps if (Part("birth"),) in parts)
    return next((key for parts, linked, key in steps if swaps in parts and linked > whole), "")


def wrong_links_json(report: LinkageReport, curator: str, checked: tuple[int, int] | None = None) -> str:
    """Return what a researcher needs to undo the wrong links of a spoke: three numbers, as JSON by the curator's name.

    Args:
        checked: links that clerks compared, and the wrong ones; None for the estimate of the report. Of a sample the
            share is wrong/checked, and its standard deviation the longer side of the exact interval of 95 % over 1.96,
            so that share +- 1.96 sd holds this interval; the part by chance is that of the report, or the share.

    Raises:
        InvalidInputError: the hub does not estimate them.
    """
    quality = report.quality
    if quality is None:
        if not report.is_hub:
            raise InvalidInputError(
                "no row is linked, so there is no share of wrong links",
                where=f"curator {curator}",
                remedy="Compare the identity columns and date_order with the tables.",
            )
        raise InvalidInputError(
            "the hub does not learn how good its links are",
            where=f"curator {curator}",
            remedy="Ask each spoke for its file.",
        )
    wrong, _ = quality
    share, chance, sd = wrong.share, wrong.chance, wrong.sd
    if checked is not None:
        share, low, high = wrong_in_sample(checked[1], checked[0], CONFIDENCE)
        chance, sd = min(chance, share), max(share - low, high - share) / sqrt(squared_quantile(CONFIDENCE))
    return json_text({curator: {"lambda": share, "lambda_chance": chance, "sd": sd}}) + "\n"


def ladder_picture(report: LinkageReport) -> Markup:
    """Return the ladder as SVG: of each key the rows that it linked, or at the hub its self-match share."""
    values = [one.matches / report.hub_rows if one.linked is None else float(one.linked) for one in report.passes]
    most = max([*values, 1e-12])
    parts = list[Markup]()
    for number, (one, value) in enumerate(zip(report.passes, values, strict=True)):
        y = _ROW * (number + 1)
        kind, colour = _COUNTED if one.runs else _LEFT_OUT
        length = round((_WIDTH - _LEFT - _RIGHT) * value / most, 1)
        label = f"{one.linked:,}" if one.linked is not None else f"{value:.3%}"
        parts += [
            _TEXT.format(x=_LEFT - 8, y=y + 13, anchor="end", colour="#222", text=f"{number + 1}  {one.key}"),
            _BAR.format(kind=kind, x=_LEFT, y=y, width=length, colour=colour),
            _TEXT.format(
                x=_LEFT + length + 6,
                y=y + 13,
                anchor="start",
                colour="#222",
                text=label if one.runs else f"{label}, does not run",
            ),
        ]
    title = "self-match share of each key at the hub" if report.is_hub else "rows linked by each key"
    parts.append(_TEXT.format(x=8, y=16, anchor="start", colour="#222", text=title))
    height = _ROW * (len(report.passes) + 1) + 8
    return _SVG.format(width=_WIDTH, height=height, text=title, parts=Markup().join(parts))


def _count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"
