"""Study files as TOML, written from plain data."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal

Table = Mapping[str, object]


def toml_text(file: Mapping[str, Table | Sequence[Table]]) -> str:
    """Return the TOML of a file of tables, lists of tables, and plain values in them.

    Raises:
        TypeError: a value that such a file does not hold.
    """
    lines: list[str] = []
    for name, value in file.items():
        tables, header = ([value], f"[{name}]") if isinstance(value, Mapping) else (value, f"[[{name}]]")
        for table in tables:
            lines.append(header)
            lines += [f"{key} = {_value(item)}" for key, item in table.items()]
            lines.append("")
    return "\n".join(lines)


def _value(value: object) -> str:
    match value:
        case str():
            # A JSON string is a TOML string, except that TOML also escapes DEL.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case bool():
            return str(value).lower()
        case int() | Decimal():
            return str(value)
        case list():
            return f"[{', '.join(_value(item) for item in value)}]"
        case dict():
            return f"{{ {', '.join(f'{_value(key)} = {_value(item)}' for key, item in value.items())} }}"
        case _:
            raise TypeError(f"a study file holds no {type(value).__name__}")
