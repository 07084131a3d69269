"""How many links are wrong, as somebody says it or as a report estimates it; and whose attributes they bring."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError

MOST = 0.5
"""Largest share of wrong links that is corrected for."""

Reports: TypeAlias = Path | str | Sequence[Path | str]
"""A file of a report, or those of several curators."""

_WHERE = "linkage error"
_EXAMPLE = "Write a share such as 0.02, 0.02:0.005 with its standard deviation, 0.02:0 for all from 0, or none."


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkError:
    """The share of a curator's links that are wrong.

    Args:
        share: of all its links, 0 to MOST.
        sd: standard deviation of the share's own error, 0 to MOST.
        least: share of those that bring a random person, if it is not known how many do: from `least` to `share`, the
            others being of people who are like the right one. None if all do.
        by: the attribute of the hub whose categories have shares of their own, of which `share` is the largest; "" for
            one share.
        of: category -> its share, of every category of that attribute.

    Raises:
        InvalidInputError: numbers out of range.
    """

    share: float
    sd: float = 0.0
    least: float | None = None
    by: str = ""
    of: Mapping[str, "LinkError"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # NaN fails every comparison.
        if not (0 <= self.share <= MOST and 0 <= self.sd <= MOST):
            raise InvalidInputError(
                f"a share of wrong links and its standard deviation lie between 0 and {MOST:g}",
                where=_WHERE,
                remedy=_EXAMPLE,
            )
        if self.least is not None and not 0 <= self.least <= self.share:
            raise InvalidInputError(
                "the share of links that are wrong by chance lies between 0 and the whole share", where=_WHERE
            )

    @property
    def is_none(self) -> bool:
        """Whether nothing is to be corrected."""
        return self.share == 0 and self.sd == 0

    @property
    def text(self) -> str:
        """The share in words."""
        if self.by:
            least = min(one.share for one in self.of.values())
            return f"shares of {least:g} to {self.share:g} by {self.by}"
        shares = f"{self.share:g}" if self.least is None else f"{self.least:g} to {self.share:g}"
        return f"a share of {shares}" + (f", standard deviation {self.sd:g}" if self.sd else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """The attributes that links with one curator bring to a table.

    Args:
        names: of the attributes, in the order of the table.
    """

    curator: str
    names: tuple[str, ...]
    error: LinkError

    def axes(self, domain: Domain) -> tuple[int, ...]:
        """Return the places of its attributes in a table."""
        return tuple(map(domain.names.index, self.names))

    def shares(self, domain: Domain) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the shares of wrong links and their standard deviations, each of a shape that broadcasts to a table.

        Raises:
            InvalidInputError: the table lacks the attribute whose categories have shares, or they are of others.
        """
        if not self.error.by:
            return np.array(self.error.share), np.array(self.error.sd)
        (attribute,) = domain.subset([self.error.by]).attributes
        if set(self.error.of) != set(attribute.categories):
            raise InvalidInputError(
                f"the shares of wrong links with {self.curator} are not those of the categories of {attribute.name}",
                where=_WHERE,
                remedy=f"Give one for each of {', '.join(attribute.categories)}.",
            )
        shape = [-1 if name == attribute.name else 1 for name in domain.names]
        rows = [self.error.of[category] for category in attribute.categories]
        return np.reshape([one.share for one in rows], shape), np.reshape([one.sd for one in rows], shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkageErrors:
    """The wrong links of a study.

    Args:
        of: the same for every curator that is linked with the hub; or curator -> its own, for each of them.
        hub: the curator with which all others are linked; "" if there are two: the first, which changes no estimate.
    """

    of: LinkError | Mapping[str, LinkError]
    hub: str = ""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that every table must have: those by whose categories shares are given."""
        every = [self.of] if isinstance(self.of, LinkError) else self.of.values()
        return tuple(dict.fromkeys(one.by for one in every if one.by))

    def legs(self, owners: Mapping[str, str], names: Sequence[str]) -> tuple[Leg, ...]:
        """Return the legs of a table, in the order of the study; those without wrong links are left out.

        Args:
            owners: attribute -> its curator, of all attributes of the study.
            names: the attributes of the table.

        Raises:
            InvalidInputError: of more than two curators no hub is known, a curator's share is not known, or shares are
                by an attribute that is not the hub's.
        """
        curators = list(dict.fromkeys(owners.values()))
        if len(curators) > 2 and not self.hub:
            raise InvalidInputError(
                "the study has more than two curators, and it is not known with whom the others are linked",
                where="hub",
                remedy=f"Name the hub: {' or '.join(curators)}.",
            )
        hub = self.hub or curators[0]
        of = {curator: self._of(curator) for curator in curators if curator != hub}
        strange = [error.by for error in of.values() if error.by and owners.get(error.by) != hub]
        if strange:
            raise InvalidInputError(
                f"shares of wrong links are given by {strange[0]}, which is not an attribute of {hub}",
                where=_WHERE,
                remedy=f"Give them by an attribute of {hub}, with which all others are linked.",
            )
        legs = (
            Leg(curator=curator, names=tuple(name for name in names if owners[name] == curator), error=error)
            for curator, error in of.items()
        )
        return tuple(leg for leg in legs if leg.names and not leg.error.is_none)

    def _of(self, curator: str) -> LinkError:
        if isinstance(self.of, LinkError):
            return self.of
        if curator not in self.of:
            raise InvalidInputError(
                f"the report says nothing of the links with {curator}",
                where="linkage report",
                remedy="Ask it for its file, and give the files of all: commands take --linkage-error once for each.",
            )
        return self.of[curator]


def correction_text(legs: Sequence[Leg]) -> tuple[str, ...]:
    """Return what was corrected, as a sentence, and perhaps one about ranges; nothing without legs."""
    shares = "; ".join(f"of the links with {leg.curator} {leg.error.text}" for leg in legs)
    of_ranges = "Of a range the estimate is that of the whole share, and an interval holds those of both ends."
    ranges = [of_ranges] if any(leg.error.least is not None for leg in legs) else []
    return (f"Corrected for wrong links: {shares}.", *ranges) if legs else ()


def links_in(words: Sequence[str]) -> LinkageErrors | None:
    """Read what a command line says of links: a share, files of reports, hub=CURATOR; as parse_linkage_error."""
    hubs = [word.removeprefix("hub=") for word in words if word.startswith("hub=")]
    files = [word for word in words if word.endswith(".json")]
    shares = [word for word in words if word not in files and not word.startswith("hub=")]
    if max(len(hubs), len(shares)) > 1 or (hubs and not (shares or files)):
        raise InvalidInputError(
            "there is one share or report, and one hub of them",
            where=_WHERE,
            remedy="Give each once; repeat the option for files of several curators alone.",
        )
    text = shares[0] if shares else "estimated" if files else "none"
    return parse_linkage_error(text, files, hubs[0] if hubs else "")


def parse_linkage_error(text: str, report: Reports = (), hub: str = "") -> LinkageErrors | None:
    """Read estimated, VALUE, VALUE:SD, VALUE:0 or none.

    release.estimate(["age", "wage"], linkage_error=veiltab.links("estimated", "links.json"))

    Args:
        text: `estimated` takes the report; VALUE is the share of links that bring a random person, SD its standard
            deviation; VALUE:0 says that from none to VALUE of them do.
        report: a JSON file, or one of each curator, for `estimated` alone.
        hub: the curator with which the others are linked; "" of two.

    Returns:
        None where nothing is to be corrected.

    Raises:
        InvalidInputError: it does not parse, is out of range, or a report is missing or was given to something else.
    """
    if text == "estimated":
        if not report:
            raise InvalidInputError(
                "the release brings no estimate of its wrong links",
                where=_WHERE,
                remedy="Give a share, such as 0.02, or to a command its file with --linkage-error FILE.json; a curator"
                " writes it by `veiltab curator linkage --for-researcher FILE`.",
            )
        return LinkageErrors(of=_read_all(report), hub=hub)
    if report:
        raise InvalidInputError(
            "a report was given, and not asked for",
            where="linkage report",
            remedy="Take estimated, or leave the report out.",
        )
    if text == "none":
        return None
    value, divided, second = text.partition(":")
    share, other = _number(value), _number(second) if divided else 0.0
    is_range = divided and other == 0
    error = LinkError(share=share, least=0.0) if is_range else LinkError(share=share, sd=other)
    return None if error.is_none else LinkageErrors(of=error, hub=hub)


def read_report(path: Path) -> LinkError | dict[str, LinkError]:
    """Read a report: {"lambda": share, "lambda_chance": share by chance, "sd": its standard deviation}.

    Args:
        path: a JSON file: this record; or {"by": attribute, "rows": {category: {"lambda", "sd"}}}; or curator -> such a
            record; other keys of a record are not read.

    Raises:
        InvalidInputError: it cannot be read, or is no such report.
    """
    try:
        data = json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        raise InvalidInputError("this is not JSON", where=str(path)) from error
    if not isinstance(data, dict) or not data:
        raise _no_report(str(path))
    if "lambda" in data or "rows" in data:
        return _record(data, str(path))
    return {curator: _record(one, f"{path}: {curator[:60]}") for curator, one in data.items()}


def _read_all(reports: Reports) -> LinkError | dict[str, LinkError]:
    first, *others = [reports] if isinstance(reports, Path | str) else reports
    shares = read_report(Path(first))
    for path in others:
        more = read_report(Path(path))
        if isinstance(shares, LinkError) or isinstance(more, LinkError) or more.keys() & shares:
            raise InvalidInputError(
                "of several reports one names no curator, or one that another names",
                where=str(path),
                remedy="Give one file of each curator, as it wrote it.",
            )
        shares |= more
    return shares


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise InvalidInputError(
            f"it cannot be read ({error.strerror or type(error).__name__})", where=str(path)
        ) from error
    except ValueError as error:
        raise InvalidInputError("this is not JSON", where=str(path)) from error


def _record(data: object, where: str, *, is_row: bool = False) -> LinkError:
    if not isinstance(data, dict):
        raise _no_report(where)
    if "rows" in data:
        return _by_category(data, where)
    try:
        return LinkError(
            share=_share(data, "lambda", where),
            sd=_share(data, "sd", where),
            least=None if is_row else _share(data, "lambda_chance", where),
        )
    except InvalidInputError as error:
        raise InvalidInputError(error.problem, where=where, remedy="Ask the curators for the report again.") from error


def _by_category(data: dict[str, Any], where: str) -> LinkError:
    by, rows = data.get("by"), data["rows"]
    if not isinstance(by, str) or not by or not isinstance(rows, dict) or not rows:
        raise _no_report(where)
    of = {name: _record(row, f"{where}: {name[:60]}", is_row=True) for name, row in rows.items()}
    return LinkError(share=max(one.share for one in of.values()), sd=max(one.sd for one in of.values()), by=by, of=of)


def _share(data: dict[str, Any], name: str, where: str) -> float:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _no_report(where)
    return float(value)


def _no_report(where: str) -> InvalidInputError:
    return InvalidInputError(
        "this is not a report of links",
        where=where,
        remedy='It has the numbers "lambda", "lambda_chance" and "sd", or a record of them for each curator, as'
        ' `veiltab curator linkage --for-researcher FILE` writes it; or {"by": ATTRIBUTE, "rows": {CATEGORY:'
        ' {"lambda": SHARE, "sd": SD}}}.',
    )


def _number(text: str) -> float:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or not text.isascii() or "_" in text:
        raise InvalidInputError(f"{text[:40]!r} is not a share of wrong links", where=_WHERE, remedy=_EXAMPLE)
    return float(number)
