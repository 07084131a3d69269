"""What commands that answer a question have: the question, the files of the answer."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from veiltab.researcher.analysis.result import Analysis
    from veiltab.researcher.estimates.estimation import TableEstimate

QUESTION_EXAMPLES = (
    'Example: veiltab researcher estimate study.toml "share of wage given education" --identity pki/researcher-rosa'
    " --release wages --out wages.csv\n\n"
    "Questions:\n\n"
    "education, wage\n\n"
    "ratio of share of wage given education against education=none\n\n"
    "ratio of total of wage=high & education=none|school, wage=high & education=college\n\n"
    "mean of hours by education; difference of mean of hours by education; sum of, variance of, median of hours\n\n"
    "quantile .9 of hours by education; correlation of wage and hours\n\n"
    "linear wage ~ age + education; odds ratio of logistic wage=high ~ education * age; loglinear age * wage\n\n"
    "survival months:died=yes by arm until 24; ratio of survival months:died=yes ~ arm + stage\n\n"
    "independence of education and wage"
)

question_argument = click.argument("question", required=False, default="")


def check_files(out: Path | None, picture: Path | None) -> None:
    """Refuse files of another kind before anything is asked.

    Raises:
        InvalidInputError: their names end in something else.
    """
    from veiltab.researcher.drawing.style import check_picture  # noqa: PLC0415 - not for help
    from veiltab.researcher.estimates.table import check_table_path  # noqa: PLC0415 - not for help

    if out is not None:
        check_table_path(out)
    if picture is not None:
        check_picture(picture)


def write_files(answer: "Analysis | TableEstimate", out: Path | None, picture: Path | None) -> list[str]:
    """Write an answer as a table, and draw it, where a file is named; return a line for each file."""
    from veiltab.researcher.estimates.table import write  # noqa: PLC0415 - not for help

    if out is not None:
        write(answer.frame(), out)
    if picture is not None:
        answer.plot().save(picture)
    return [f"Written: {path}" for path in (out, picture) if path is not None]
