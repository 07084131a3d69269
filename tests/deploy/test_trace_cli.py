"""One release over all parties, drawn from the files of their spans."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.conftest import Ran
from veiltab.common.errors import InvalidInputError
from veiltab.common.observe.tracing import root_of
from veiltab.deploy.operate.spans import Span, read_spans
from veiltab.deploy.operate.trace_cli import trace
from veiltab.deploy.operate.trace_picture import draw as draw_picture

FIRST, LAST = "ab" * 16, "ac" * 16
SECOND = 1_000_000_000


def span(name: str, party: str, start: float, end: float, release: str = LAST, **facts: str | int) -> Span:
    """Return a span at some seconds after the beginning."""
    return Span(
        trace=release,
        span=root_of(f"{name}{party}{start}"),
        parent=root_of(release),
        name=name,
        party=party,
        start=100 * SECOND + round(start * SECOND),
        end=100 * SECOND + round(end * SECOND),
        facts=facts,
    )


def line(one: Span) -> str:
    """Return a span as a line of OTLP's JSON, beside one of another program."""
    facts = {"party": one.party, **one.facts}
    plain = {
        "traceId": one.trace,
        "spanId": one.span,
        "parentSpanId": one.parent,
        "name": one.name,
        "startTimeUnixNano": str(one.start),
        "endTimeUnixNano": str(one.end),
        "attributes": [
            {"key": f"veiltab.{key}", "value": {"intValue" if isinstance(fact, int) else "stringValue": str(fact)}}
            for key, fact in facts.items()
        ],
    }
    other = plain | {"attributes": [{"key": "http.method", "value": {"stringValue": "GET"}}]}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [other]}, {"spans": [plain]}]}]}) + "\n"


SPANS = {
    "rosa": [
        span("release", "researcher rosa", -50, -40, FIRST, outcome="ready"),
        span("release", "researcher rosa", 0, 3, outcome="ready"),
        span("count", "researcher rosa", 2.5, 3, outcome="done"),
    ],
    "alice": [
        span("state charged", "curator alice", 0.5, 1.5),
        span("encrypt", "curator alice", 0.75, 1, attribute="sex", bytes=400, outcome="done"),
        span("plan", "curator alice", 0.25, 0.5, outcome="failed", reason="BUDGET_EXCEEDED"),
    ],
    "cloud": [span("count reports", "server cloud", 2, 2.25, reports=5, outcome="done")],
}


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name, spans in SPANS.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(map(line, spans)))
    return [str(path) for path in sorted(tmp_path.glob("*.jsonl"))]


@pytest.fixture
def draw(files: list[str], ran: Ran) -> Ran:
    return lambda *options: ran(trace, *files, *options)


def test_the_last_release_is_told_in_order(draw: Ran) -> None:
    code, out, err = draw()
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{LAST}: 3 parties, 6 spans, 3.000 s",
        "     0.000 s  researcher rosa      3.0000 s  release  ready",
        "     0.250 s  curator alice        0.2500 s  plan  failed BUDGET_EXCEEDED",
        "     0.500 s  curator alice        1.0000 s  state charged",
        "     0.750 s  curator alice        0.2500 s  encrypt  sex, 400 bytes",
        "     2.000 s  server cloud         0.2500 s  count reports  5 reports",
        "     2.500 s  researcher rosa      0.5000 s  count",
    ]


def test_a_release_is_found_by_the_beginning_of_its_id(draw: Ran) -> None:
    assert draw("--release", "abab")[1].startswith(f"{FIRST}: 1 parties, 1 spans, 10.000 s")
    code, _, err = draw("--release", "a")
    assert code == 2
    assert "2 releases or rounds have this prefix" in err
    code, _, err = draw("--release", "ff")
    assert code == 2
    assert "no such release or round" in err


def test_one_object_has_every_span(draw: Ran) -> None:
    code, out, _ = draw("--json")
    data = json.loads(out)
    assert (code, data["trace"], data["seconds"]) == (0, LAST, 3.0)
    assert data["parties"] == ["curator alice", "researcher rosa", "server cloud"]
    assert [one["name"] for one in data["spans"]][:2] == ["release", "plan"]
    assert data["spans"][3]["bytes"] == 400


def test_the_picture_has_a_lane_a_party(draw: Ran, tmp_path: Path) -> None:
    picture = tmp_path / "trace.svg"
    code, out, _ = draw("--out", str(picture))
    assert (code, out) == (0, f"Written: {picture}\n")
    texts = ["".join(element.itertext()) for element in ET.parse(picture).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314 - our own
    places = [texts.index(name) for name in ("researcher rosa", "curator alice", "server cloud")]
    assert places == sorted(places)
    assert {"encrypt", "plan", "count", "charged", LAST} <= set(texts)
    first = picture.read_bytes()
    draw("--out", str(picture), "--text")
    assert picture.read_bytes() == first, "the same spans make the same bytes"


def test_hundreds_of_short_steps_stay_visible(tmp_path: Path) -> None:
    short = [span("count reports", "server cloud", 100 + step / 10, 100.01 + step / 10) for step in range(900)]
    draw_picture([span("state open", "server cloud", 0, 200), *short], tmp_path / "trace.svg")
    lines = (tmp_path / "trace.svg").read_text().splitlines()
    dark = [line for line in lines if "fill: #3d7a4b" in line]
    assert len(dark) == 900
    assert not any("stroke" in line for line in dark)
    assert any("stroke: #ffffff" in line for line in lines if "fill: #d7dde4" in line)


def test_a_picture_may_be_pixels(draw: Ran, tmp_path: Path) -> None:
    assert draw("--out", str(tmp_path / "trace.png"))[0] == 0
    assert (tmp_path / "trace.png").read_bytes().startswith(b"\x89PNG")
    code, _, err = draw("--out", str(tmp_path / "trace.pdf"))
    assert (code, "the picture's name ends neither in .svg nor in .png" in err) == (2, True)
    code, _, err = draw("--out", str(tmp_path / "trace.png" / "trace.svg"))
    assert (code, "cannot be written" in err) == (2, True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (LAST, "x" * 32),
        (f'"{LAST}"', "5"),
        (root_of(LAST), "12"),
        ('"100500000000"', '"soon"'),
        ('"100500000000"', "1e999"),
        ('"101500000000"', '"100499999999"'),
        ('"101500000000"', "null"),
        ('"stringValue"', '"boolValue"'),
        ("attributes", "facts"),
        ("veiltab.party", "veiltab.role"),
        ("resourceSpans", "resourceMetrics"),
        ("[{", "[[{"),
        ("]}\n", "]"),
    ],
)
def test_what_is_no_span_is_skipped(tmp_path: Path, before: str, after: str) -> None:
    whole = line(SPANS["alice"][0])
    assert before in whole
    path = tmp_path / "alice.jsonl"
    path.write_text(whole.replace(before, after) + "[" * 100_000 + f"\nnull\n7\n{whole}{whole[:60]}")
    assert read_spans([path]) == (SPANS["alice"][0],)


def test_a_file_without_a_span_of_a_party_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for content in (b"server cloud serves on port 1\n", b"\xff\xfe\0"):
        path.write_bytes(content)
        with pytest.raises(InvalidInputError, match="no span of a party"):
            read_spans([path])
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_spans([tmp_path / "absent"])


def test_no_spans_are_no_picture(ran: Ran, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    code, _, err = ran(trace, str(tmp_path / "empty.jsonl"))
    assert (code, "no such release or round" in err) == (2, True)
