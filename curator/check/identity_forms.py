"""How identity fields that are numbers or short texts are written, in parts: tables can differ in it."""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from veiltab.common.linkage.ladder import FieldKind
from veiltab.common.linkage.normalisation import normaliser
from veiltab.common.study.identity_table import field_of
from veiltab.curator.check.id_forms import FormPart, FormReader
from veiltab.curator.table.ids import SEPARATOR

_COMPARED = (FieldKind.POSTCODE, FieldKind.NUMBER, FieldKind.TEXT)


def written_columns(identity: Mapping[str, Sequence[str]], kinds: Mapping[str, FieldKind]) -> list[str]:
    """Return the columns of identity fields whose forms are shown: those compared, and dates."""
    field_kinds = (*_COMPARED, FieldKind.BIRTH)
    return [column for name, columns in identity.items() if kinds[name] in field_kinds for column in columns]


def kinds_of(names: Iterable[str]) -> dict[str, FieldKind]:
    """Return the kinds of the fields of a draft, such as "card:number", by their names."""
    return dict(map(field_of, names))


def identity_forms(ids: Iterable[pa.Array], kinds: Mapping[str, FieldKind]) -> dict[str, tuple[FormPart, ...]]:
    """Return the forms of normalised values of each field that is compared between tables.

    Args:
        ids: of each row its fields joined by SEPARATOR.
        kinds: of these fields, in their order.
    """
    readers = {name: FormReader() for name, kind in kinds.items() if kind in _COMPARED}
    for chunk in ids:
        parts = pc.split_pattern(chunk, SEPARATOR)
        for place, name in enumerate(kinds):
            if reader := readers.get(name):
                coded = pc.dictionary_encode(pc.list_element(parts, place))
                normal = normaliser(kinds[name], "ymd", ())
                values = pa.array([normal(one) for one in coded.dictionary.to_pylist()], pa.large_string())
                reader.take(values.take(coded.indices))
    return {name: parts for name, reader in readers.items() if (parts := reader.parts())}
