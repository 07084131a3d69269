"""Small releases of two commits on one machine, in turns: python -m benchmarks.compare COMMIT.

The other commit gets a worktree of its own for the while, and runs with this environment. Each side is measured by
`benchmarks.latency` of this commit; a figure is the median of its turns.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from rich.table import Table

from benchmarks.printing import console, figures_table

HERE = Path(__file__).parents[1]


def figures_of(root: Path) -> dict[str, float]:
    """Return what `benchmarks.latency` measures of the sources below a folder."""
    command = [sys.executable, "-P", str(HERE / "benchmarks" / "latency.py"), "--json"]
    path = f"{root / 'src'}{os.pathsep}{root}"
    figures: dict[str, float] = json.loads(_ran(command, cwd=root, env=os.environ | {"PYTHONPATH": path}))
    return figures


def _ran(command: Sequence[str], cwd: Path = HERE, env: Mapping[str, str] | None = None) -> bytes:
    """Return what a command writes."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=cwd, env=env).stdout  # noqa: S603 - ours, and git


def compared(base: list[dict[str, float]], now: list[dict[str, float]]) -> Table:
    """Return the medians of both sides, and their ratios."""
    table = figures_table("", ("base", "now", "now / base"))
    for name in now[0]:
        before, after = (statistics.median(turn.get(name, 0.0) for turn in side) for side in (base, now))
        table.add_row(name, f"{before:.1f}", f"{after:.1f}", f"{after / before:.2f}" if before else "")
    return table


@click.command(help=__doc__)
@click.argument("commit")
@click.option("--turns", default=3, show_default=True, help="Of each commit.")
def main(commit: str, turns: int) -> None:
    """Measure both."""
    base, now = list[dict[str, float]](), list[dict[str, float]]()
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name) / "base"
        git = ("git", "-C", str(HERE), "worktree")
        _ran([*git, "add", "--quiet", "--detach", str(tree), commit])
        try:
            for _ in range(turns):
                base.append(figures_of(tree))
                now.append(figures_of(HERE))
        finally:
            _ran([*git, "remove", "--force", str(tree)])
    console().print(compared(base, now))


if __name__ == "__main__":
    main()
