"""An entry for the registry of differential-privacy deployments that OpenDP keeps, as YAML.

The fields are those of `schemas/deployments-schema.yaml` of github.com/opendp/deployments-registry-data (July 2026). It
is a draft: a person completes it and proposes it there.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from veiltab.common.errors import InvalidInputError
from veiltab.deploy.attest.certified import NOT_STATED, UNIT, Certified, whole

PRODUCTS = (
    "Summary statistics",
    "Machine learning model",
    "Dataset",
    "Synthetic data",
    "Interactive API",
    "SQL queries",
)
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")

_FILE_NAME = re.compile(r"[a-z0-9_]+\.yaml")
_AS_IT_IS = re.compile(r"[A-Za-z][A-Za-z0-9 ,.;()'/-]*[A-Za-z0-9.)]")
"""Texts that YAML reads as texts without quotes; none of them is a number, and booleans are quoted."""
_BOOLEANS = {"yes", "no", "on", "off", "true", "false", "null", "y", "n"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the registry asks and no certificate says.

    Args:
        authors: who fills in the entry.
        name: of the data product; None for the study's title.
        curators: who publishes it; none for the names in the study file.
        region: which region it is about, or whose law applies.
        product: its type, one of `PRODUCTS`.
        sector: one of `SECTORS`.
        published: YYYY-MM-DD; None for the day of the last signature.
    """

    authors: tuple[str, ...]
    name: str | None = None
    curators: tuple[str, ...] = ()
    use: str = NOT_STATED
    region: str = NOT_STATED
    product: str = PRODUCTS[0]
    sector: str | None = None
    published: str | None = None


def check_file_name(name: str) -> None:
    """Refuse a file name that the registry does not take.

    Raises:
        InvalidInputError: it has other characters, or another ending.
    """
    if not _FILE_NAME.fullmatch(name):
        remedy = "Use a-z, 0-9 and underscores, and the ending .yaml."
        raise InvalidInputError("the registry takes no file of this name", where=name, remedy=remedy)


def registry_entry(one: Certified, facts: Facts) -> str:
    """Return the entry as YAML.

    Every privacy parameter is that which the noise keeps, with all its digits (epsilon in nats, an upper bound); the
    bounds of coalitions stand beside them.
    """
    name = facts.name or one.study.title
    curators = facts.curators or tuple(member.name for member in one.study.curators)
    published = facts.published or f"{one.last_signed:%Y-%m-%d}"
    basic: dict[str, object] = {
        "name": name,
        "data_curators": curators,
        "intended_use": facts.use,
        "data_product_type": facts.product,
        "data_product_region": facts.region,
        "description": f"{one.product()} Attributes: {one.attributes()}.",
        "publication_date": _Quoted(published),
    }
    if facts.sector is not None:
        basic["data_product_sector"] = facts.sector
    parameters = {"epsilon": one.release.epsilon}
    if one.release.delta is not None:
        parameters["delta"] = one.release.delta
    deployment = {
        "basic": basic,
        "dp_variant": {
            "variant_name": f"{one.variant.capitalize()} DP",
            "data_domain": f"{one.sample()} Each has one category of every attribute: {one.attributes()}.",
            "unprotected_quantities": one.unprotected(),
        },
        "privacy_loss": {
            "privacy_unit": f"Person: {UNIT}",
            "privacy_unit_details": one.neighbours,
            "privacy_parameters": parameters,
            "privacy_parameters_details": whole(
                ["Epsilon in nats; every number is an upper bound.", f"- {one.guarantee()}"]
                + [f"- {who}: {faces}" for who, faces in one.coalitions()]
            ),
        },
        "deployment_model": _model(one),
        "accounting": {"composition": one.composition()},
        "implementation": {"mechanisms": whole([f"- {one.mechanism()}", f"- {one.tests()}"])},
        "administrative": {
            "notes": f"Made from a release certificate of release {one.release.release_id}, of which every line holds."
            f" What it does not say is {NOT_STATED}.",
            "registry_authors": facts.authors,
        },
    }
    # The registry reads the address from this very line, so that it stands without quotes.
    slug = f"url_slug: {_slug(name, curators, published)}"
    return whole([slug, *_yaml({"status": "Draft", "tier": 2, "deployment": deployment})])


def _model(one: Certified) -> dict[str, object]:
    parties = [f"- {party}" for party in one.parties]
    return {
        "model_name": "Federated",
        "model_name_details": "The columns stay with their holders, the curators. They encrypt what is released, and a"
        " server adds noise to ciphertext that it cannot read. Nobody holds the whole table. Whom one must trust: "
        + one.trust(),
        "actors": whole([*parties, f"- researcher {one.release.researcher}, whose service decrypts and counts"])
        + "What each coalition of them faces stands with the privacy parameters.",
        "release_type": "Many releases" if one.release.several else "One release",
        "release_type_details": one.composition(),
        "data_source_type": "Static",
        "access_type": "Non-interactive",
        "access_type_details": "Curators decide about each request. Who asked sees noisy counts of the tables alone.",
    }


def _slug(name: str, curators: Sequence[str], published: str) -> str:
    """Return the address of an entry, as the registry computes it."""
    parts = (name, "-".join(curators), published.split("-", maxsplit=1)[0])
    return "_".join(re.sub(r"\W+", "_", part.lower()) for part in parts).replace("_", "-")


class _Quoted(str):
    """A text that always stands in quotes: YAML takes a bare date for no text."""

    __slots__ = ()


def _yaml(value: Mapping[str, object], indent: str = "") -> Iterator[str]:
    """Yield the lines of a mapping: strings as YAML 1.1 and 1.2 both read them, numbers in plain decimals."""
    for key, each in value.items():
        match each:
            case Mapping():
                yield f"{indent}{key}:"
                yield from _yaml(each, f"{indent}  ")
            case tuple():
                yield f"{indent}{key}:"
                yield from (f"{indent}  - {_scalar(one)}" for one in each)
            case str() if "\n" in each:
                yield f"{indent}{key}: |"
                yield from (f"{indent}  {line}" for line in each.splitlines())
            case _:
                yield f"{indent}{key}: {_scalar(each)}"


def _scalar(value: object) -> str:
    match value:
        case Decimal():
            return f"{value:f}"
        case int():
            return str(value)
        case _Quoted():
            return json.dumps(value, ensure_ascii=False)
        case str():
            plain = _AS_IT_IS.fullmatch(value) and value.lower() not in _BOOLEANS
            return value if plain else json.dumps(value, ensure_ascii=False)
        case _:
            raise TypeError(type(value).__name__)
