import csv
import json
from io import StringIO
from math import inf, nan

from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError
from veiltab.papers.experiment import Curve, Figure, Mark, Panel
from veiltab.papers.tables import COLUMNS, as_csv, series_of


def figure(*curves: Curve, title: str = 'a "panel", really') -> Figure:
    panel = Panel(title=title, x_label="x", y_label="y", curves=curves, marks=(Mark(x=3, label="m*"),))
    return Figure(name="test-1", title="T", panels=(panel,), caption="C")


def test_numbers_are_read_back_the_same() -> None:
    third = 1 / 3
    bars = Curve(label="b,1", x=(1, 2), y=(third, 1e-300), low=(0.1, 0.2), high=(0.3, nan))
    rows = list(csv.reader(StringIO(as_csv(figure(bars, Curve(label="c", x=(1.5,), y=(inf,)))))))
    assert tuple(rows[0]) == COLUMNS
    title = 'a "panel", really'
    assert rows[1:] == [
        [title, "b,1", "1.0", repr(third), "0.1", "0.3"],
        [title, "b,1", "2.0", "1e-300", "0.2", "nan"],
        [title, "c", "1.5", "inf", "", ""],
        [title, "m*", "3.0", "", "", ""],
    ]
    assert "\r" not in as_csv(figure(bars))


def test_series_have_names_of_their_own_and_only_numbers_that_json_has() -> None:
    found = series_of([figure(Curve(label="c", x=(1, 2, 3), y=(nan, inf, 2)), title="p")])
    assert found == {"test-1/p/c": {"x": [1.0, 2.0, 3.0], "y": [None, None, 2.0]}}
    json.dumps(found, allow_nan=False)
    twice = Curve(label="c", x=(), y=())
    with refuses(InvalidInputError, where='test-1/a "panel", really/c'):
        series_of([figure(twice, twice)])
