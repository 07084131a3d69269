"""Fields of records by their names: as JSON shows them, and as another record or a message has them."""

from collections.abc import Iterable
from dataclasses import field, fields
from typing import Any


def shown_as(name: str) -> Any:  # noqa: ANN401 - a field of any type
    """Return a field of a dataclass that JSON shows by another name."""
    return field(metadata={"shown": name})


def field_values(record: Any) -> dict[str, object]:  # noqa: ANN401 - any dataclass
    """Return the fields of a record, in their order; what they hold is shown when it is written."""
    return {one.metadata.get("shown", one.name): getattr(record, one.name) for one in fields(record)}


def same_fields(record: object, names: Iterable[str]) -> dict[str, Any]:
    """Return some fields of a record, or of a message, as they are."""
    return {name: getattr(record, name) for name in names}
