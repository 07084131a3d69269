"""An entry for the registry of differential-privacy deployments that OpenDP keeps, as YAML.

The fields are those of `schemas/deployments-schema.yaml` of github.com/opendp/deployments-registry-data (July 2026). It
is a draft: a person completes it and proposes it there.
"""

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.deploy.registry.certified_release import CertifiedRelease

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the registry asks and no certificate says.

    Args:
        authors: who fills in the entry.
        curators: who publishes it.
        region: which region it is about, or whose law applies.
        product: one of `PRODUCTS`.
        sector: one of `SECTORS`.
        published: YYYY-MM-DD.
    """

    authors: tuple[str, ...]
    name: str
    curators: tuple[str, ...]
    use: str
    region: str
    product: str
    sector: str | None
    published: str


def check_out(path: Path) -> None:
    """Refuse a name that no entry has.

    Raises:
        InvalidInputError: the registry takes no file of this name.
    """
    if not _FILE_NAME.fullmatch(path.name):
        remedy = "Use a-z, 0-9 and underscores, and the ending .yaml."
        raise InvalidInputError("the registry takes no file of this name", where=path.name, remedy=remedy)


def registry_entry(one: CertifiedRelease, facts: Facts) -> str:
    """Return the entry as YAML.

    Every privacy parameter is that which the noise keeps, with all its digits (epsilon in nats, an upper bound); the
    bounds of coalitions stand beside them.
    """
    basic: dict[str, object] = {
        "name": facts.name,
        "data_curators": facts.curators,
        "intended_use": facts.use,
        "data_product_type": facts.product,
        "data_product_region": facts.region,
        "description": f"{one.product()} Attributes: {one.attributes()}.",
        "publication_date": facts.published,
    }
    if facts.sector is not None:
        basic["data_product_sector"] = facts.sector
    parameters = {"epsilon": one.release.epsilon}
    if one.release.delta is not None:
        parameters["delta"] = one.release.delta
    deployment = {
        "basic": basic,
        "dp_variant": {
            "variant_name": one.variant,
            "data_domain": f"{one.sample()} A row has one category of each of its attributes: {one.attributes()}.",
            "unprotected_quantities": one.unprotected(),
        },
        "privacy_loss": {
            "privacy_unit": "Person: one person's whole row, in the columns of all curators",
            "privacy_unit_details": one.neighbours(),
            "privacy_parameters": parameters,
            "privacy_parameters_details": _lines(
                f"Epsilon is in nats, and every number is an upper bound. {one.guarantee()}",
                "What each coalition faces (in brackets: what it sees, or why):",
                *(f"- {each.name} ({each.note}): {each.limit_in_full}" for each in one.coalitions()),
            ),
        },
        "deployment_model": _model(one),
        "accounting": {"composition": one.composition()},
        "implementation": {"mechanisms": _lines(f"- {one.mechanism()}", f"- {one.tests()}")},
        "administrative": {
            "notes": f"This draft was made from the certificate of release {one.release.release_id}, of which no"
            " line fails, and from the study file.",
            "registry_authors": facts.authors,
        },
    }
    # The registry reads the address from this very line, so that it stands without quotes.
    slug = f"url_slug: {_slug(facts)}"
    return _lines(slug, *_yaml({"status": "Draft", "tier": 2, "deployment": deployment}))


def _model(one: CertifiedRelease) -> dict[str, object]:
    researcher = f"researcher {one.release.researcher}"
    return {
        "model_name": "Federated",
        "model_name_details": "Each curator keeps its own columns. The curators encrypt what they release, and a server"
        " adds noise to the ciphertext, which it cannot read. No party has the whole table without noise."
        f" {one.trust()}",
        "actors": _lines(
            *(f"- {party}" for party in one.parties),
            f"- desk: the service of {researcher}, which decrypts the noisy rows and counts them",
            f"- analyst: {researcher} and those who see the counts",
        ),
        "release_type": "Many releases" if one.release.several else "One release",
        "release_type_details": one.product(),
        "data_source_type": "Static",
        "access_type": "Non-interactive",
        "access_type_details": "The curators decide about each request. Those who ask see the noisy counts of the"
        " tables.",
    }


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def _slug(facts: Facts) -> str:
    """Return the address of an entry, as the registry computes it."""
    parts = (facts.name, "-".join(facts.curators), facts.published.split("-", maxsplit=1)[0])
    return "_".join(re.sub(r"\W+", "_", part.lower()) for part in parts).replace("_", "-")


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
        case str():
            return json.dumps(value, ensure_ascii=False)
        case _:
            raise TypeError(type(value).__name__)
