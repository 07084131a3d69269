"""The yardstick of benchmarks.scale: both tables joined and counted by DuckDB, in one process that sees everything.

Run by that benchmark: python -m benchmarks.plain_duckdb FIRST SECOND --scratch FOLDER [--memory-limit 1.5GB]. It
protects nobody, and normalises no id.
"""

import json
import resource
import time
from pathlib import Path

import click
import duckdb

from benchmarks.made_tables import CATEGORIES, ID


@click.command()
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option("--scratch", type=click.Path(path_type=Path), required=True, help="Folder for what memory has no room.")
@click.option("--memory-limit", help="Most memory that DuckDB may plan with; without it, its own choice.")
def main(first: Path, second: Path, scratch: Path, memory_limit: str | None) -> None:
    """Join and count; print rows, seconds and peak memory as one JSON object."""
    began = time.monotonic()
    settings: dict[str, str | bool | int | float | list[str]] = {"temp_directory": str(scratch)}
    if memory_limit is not None:
        settings["memory_limit"] = memory_limit
    names = ", ".join(CATEGORIES)
    # Names of the benchmark's own.
    counts = (
        duckdb.connect(config=settings)
        .execute(
            f"SELECT {names}, count(*) FROM read_parquet(?) JOIN read_parquet(?) USING ({ID}) GROUP BY {names}",  # noqa: S608 - the program's own words
            [str(first), str(second)],
        )
        .fetchall()
    )
    used = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "rows": sum(count for *_, count in counts),
        "cells": len(counts),
        "wall": time.monotonic() - began,
        "cpu": used.ru_utime + used.ru_stime,
        "peak": 1024 * used.ru_maxrss,
    }
    click.echo(json.dumps(figures))


if __name__ == "__main__":
    main()
