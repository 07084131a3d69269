"""A record as JSON shows it: every field by its name, or by the name that the field states."""

from dataclasses import field, fields
from typing import Any


def shown_as(name: str) -> Any:  # noqa: ANN401 - a field of any type
    """Return a field of a dataclass that JSON shows by another name."""
    return field(metadata={"shown": name})


def shown(record: Any) -> dict[str, object]:  # noqa: ANN401 - any dataclass
    """Return the fields of a record, in their order; what they hold is shown when it is written."""
    return {one.metadata.get("shown", one.name): getattr(record, one.name) for one in fields(record)}
