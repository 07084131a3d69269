"""`veiltab trace`: one release over all parties, from files of their spans."""

from collections.abc import Sequence
from pathlib import Path

import click

from veiltab.common.command.cli import EXIT_CODES, PATH, emit, json_option
from veiltab.common.core.texts.id_prefix import whole_id
from veiltab.deploy.operate.spans import Span, read_spans


@click.command(
    epilog="Example: veiltab trace alice.jsonl bob.jsonl cloud.jsonl rosa.jsonl --out trace.svg\n\n" + EXIT_CODES
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=PATH)
@click.option(
    "--release", "wanted", default="", help="Id of the release or round, or a prefix of it; by default the last one."
)
@click.option("--out", type=PATH, help="Draw a timeline here (.svg or .png).")
@click.option("--text", "as_text", is_flag=True, help="Print the timeline too when it is drawn.")
@json_option
def trace(files: tuple[Path, ...], wanted: str, out: Path | None, as_text: bool, as_json: bool) -> None:
    """Show who did what and when in one release. Times are by each party's own clock."""
    spans = _of_one(read_spans(files), wanted)
    if out is not None:
        from veiltab.deploy.operate.trace_picture import draw

        draw(spans, out)
    printed = [] if out is not None and not as_text else timeline(spans)
    written = [] if out is None else [f"Written: {out}"]
    emit(as_json, _as_dict(spans, out), "\n".join([*printed, *written]))


def _of_one(spans: Sequence[Span], wanted: str) -> tuple[Span, ...]:
    """Return the spans of the trace with an id, or of the one that began last."""
    traces = list(dict.fromkeys(span.trace for span in spans))
    kinds, remedy = ("release", "round"), f"These files have: {', '.join(traces[-10:]) or 'none'}."
    chosen = whole_id(wanted or "".join(traces[-1:]), traces, kinds=kinds, where="--release", remedy=remedy)
    return tuple(span for span in spans if span.trace == chosen)


def timeline(spans: Sequence[Span]) -> list[str]:
    """Return the spans of one trace as lines, ordered by their start."""
    began, ended = spans[0].start, max(span.end for span in spans)
    parties = {span.party for span in spans}
    width = max(map(len, parties))
    head = f"{spans[0].trace}: {len(parties)} parties, {len(spans)} spans, {(ended - began) / 1e9:.3f} s"
    return [head, *(_line(span, began, width) for span in spans)]


def _line(span: Span, began: int, width: int) -> str:
    facts = span.facts
    outcome = facts.get("outcome", "")
    details = [
        str(facts.get("attribute", "")),
        f"{facts['bytes']} bytes" if "bytes" in facts else "",
        f"{facts['reports']} reports" if "reports" in facts else "",
        f"{outcome} {facts.get('reason', '')}".strip() if outcome not in {"", "done"} else "",
    ]
    return (
        f"{(span.start - began) / 1e9:10.3f} s  {span.party:{width}}  {span.seconds:10.4f} s  {span.name}"
        f"  {', '.join(filter(None, details))}".rstrip()
    )


def _as_dict(spans: Sequence[Span], out: Path | None) -> dict[str, object]:
    return {
        "trace": spans[0].trace,
        "parties": sorted({span.party for span in spans}),
        "seconds": (max(span.end for span in spans) - spans[0].start) / 1e9,
        "spans": [
            {
                "span": span.span,
                "parent": span.parent,
                "name": span.name,
                "party": span.party,
                "start": span.start,
                "end": span.end,
                **span.facts,
            }
            for span in spans
        ],
        "out": out,
    }
