"""The budget over time as a picture: what the releases have taken of it, step by step, below the line of all of it."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from markupsafe import Markup

WIDTH, HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 16, 14, 40
"""Room for labels of 24 units: a phone shows the whole picture at half its size."""
_TICKS = 4
_SVG = Markup(
    '<svg viewBox="0 0 {width} {height}" role="img" aria-labelledby="budget-title budget-text">'
    '<title id="budget-title">The budget over time</title><desc id="budget-text">{text}</desc>{parts}</svg>'
)
_GRID = Markup('<line class="{kind}" x1="{left}" y1="{y}" x2="{right}" y2="{y}"/>')
_LABEL = Markup('<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>')


def budget_chart(points: Sequence[tuple[int, float]], now: int) -> Markup:
    """Return a picture of (Unix seconds, part of the budget that is charged), oldest first; empty if there are none."""
    if not points:
        return Markup()
    first, last = points[0][0], max(now, points[-1][0] + 1)
    top = max(1.0, points[-1][1])
    across = (WIDTH - _LEFT - _RIGHT) / (last - first or 1)
    up = (HEIGHT - _TOP - _BOTTOM) / top

    def x(seconds: float) -> float:
        return round(_LEFT + (seconds - first) * across, 1)

    def y(share: float) -> float:
        return round(HEIGHT - _BOTTOM - share * up, 1)

    steps = [f"M{x(first)} {y(0)}", *(f"H{x(seconds)} V{y(share)}" for seconds, share in points), f"H{x(last)}"]
    line = " ".join(steps)
    parts = [
        *(_GRID.format(kind="grid", left=_LEFT, right=WIDTH - _RIGHT, y=y(part / 4)) for part in range(1, 4)),
        *(
            _LABEL.format(x=_LEFT - 6, y=y(part / 4) + 4, anchor="end", kind="", text=f"{25 * part}%")
            for part in range(5)
        ),
        Markup('<path class="area" d="{} V{} Z"/>').format(line, y(0)),
        Markup('<path class="line" d="{}"/>').format(line),
        _GRID.format(kind="limit", left=_LEFT, right=WIDTH - _RIGHT, y=y(1)),
        _GRID.format(kind="axis", left=_LEFT, right=WIDTH - _RIGHT, y=y(0)),
        *_times(first, last, x),
    ]
    text = f"{points[-1][1]:.0%} of the budget is charged; the dashed line is all of it."
    return _SVG.format(width=WIDTH, height=HEIGHT, text=text, parts=Markup().join(parts))


def _times(first: int, last: int, x: Callable[[float], float]) -> list[Markup]:
    """Return the times below the picture: its ends, and some between."""
    form = "%d %b %Y" if last - first > 3 * 86_400 else "%d %b, %H:%M"
    labels = []
    for number in range(_TICKS):
        seconds = first + (last - first) * number / (_TICKS - 1)
        anchor = "start" if number == 0 else "end" if number == _TICKS - 1 else "middle"
        text = f"{datetime.fromtimestamp(seconds, UTC):{form}}"
        kind = "inner" if anchor == "middle" else ""  # a phone has no room for it
        labels.append(_LABEL.format(x=x(seconds), y=HEIGHT - 12, anchor=anchor, kind=kind, text=text))
    return labels
