"""What a demonstration changes in a ready study file: where the parties listen, and the budget."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any


def place_parties(study: dict[str, Any], endpoints: Mapping[str, str]) -> None:
    """Set endpoints in a parsed study file: party name -> host:port; a party that is not named stays where it is."""
    for party in (study["server"], *study["curator"], *study["researcher"]):
        party["endpoint"] = endpoints.get(party["name"], party["endpoint"])


def set_budget(study: dict[str, Any], epsilon: Decimal | None, delta: Decimal | None) -> None:
    """Set the budget of each curator in a parsed study file (epsilon in nats); None leaves what is there."""
    if epsilon is not None:
        study["budget"]["epsilon"] = epsilon
    if delta is not None:
        study["budget"]["delta"] = delta
