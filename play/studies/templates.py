"""What a demonstration or a rehearsal changes in a ready study file: where the parties listen, budget, id and title."""

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from veiltab.common.study.members import RELAYED
from veiltab.common.study.toml_text import toml_text

_SUFFIX = "-rehearsal"
_LONGEST_ID, _LONGEST_TITLE = 40, 200


def place_parties(study: dict[str, Any], endpoints: Mapping[str, str]) -> None:
    """Set endpoints in a parsed study file: party name -> host:port; a party that is not named stays where it is."""
    for party in (study["server"], *study.get("curator", []), *study["researcher"]):
        party["endpoint"] = endpoints.get(party["name"], party["endpoint"])


def set_budget(study: dict[str, Any], epsilon: Decimal | None, delta: Decimal | None) -> None:
    """Set the budget of each curator in a parsed study file (epsilon in nats); None leaves what is there."""
    if epsilon is not None:
        study["budget"]["epsilon"] = epsilon
    if delta is not None:
        study["budget"]["delta"] = delta


def rehearsal_of(source: bytes, endpoints: Mapping[str, str]) -> bytes:
    """Return the study file of a study's rehearsal.

    Its id and title say that it is one, and the id stands in certificates: those of the rehearsal are refused in the
    study, and the study's own in the rehearsal. Everything else is the study's.

    Args:
        endpoints: party name -> host:port.
    """
    study = tomllib.loads(source.decode("utf-8"), parse_float=Decimal)
    head = study["study"]
    head["id"] = head["id"][: _LONGEST_ID - len(_SUFFIX)].rstrip("-") + _SUFFIX
    head["title"] = f"Rehearsal of {head['title']}"[:_LONGEST_TITLE]
    place_parties(study, endpoints)
    return toml_text(study).encode()


def relayed(source: bytes, endpoint: str) -> bytes:
    """Return a study file whose curators and researchers are called through a relay.

    Args:
        endpoint: the relay's, host:port.
    """
    study = tomllib.loads(source.decode("utf-8"), parse_float=Decimal)
    study["relay"] = {"endpoint": endpoint}
    place_parties(study, {party["name"]: RELAYED for party in (*study["curator"], *study["researcher"])})
    return toml_text(study).encode()
