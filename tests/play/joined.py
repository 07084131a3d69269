"""Tables of curators, joined by their ids."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tests.curator.made_rows import columns_in, ids_in
from veiltab.common.study.file import Study
from veiltab.curator.table.table import Table


def joined(study: Study, tables: Mapping[str, Table]) -> NDArray[np.int64]:
    """Return the symbols of the people whom all tables have: a row a person, a column an attribute of the study."""
    places = {name: {one: row for row, one in enumerate(ids_in(table.respondents))} for name, table in tables.items()}
    common = set.intersection(*(set(rows) for rows in places.values()))
    rows = {name: [own[one] for one in common] for name, own in places.items()}
    columns = {name: columns_in(table.respondents) for name, table in tables.items()}
    return np.column_stack(
        [columns[rule.owner][rule.name][rows[rule.owner]].astype(np.int64) for rule in study.attributes]
    )
