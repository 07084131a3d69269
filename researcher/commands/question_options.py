"""Options of a command that say what to ask of a table: the fields of a Question."""

import functools
from typing import Any, cast

import click

from veiltab.common.command.cli import Command, listed

QUESTION_EXAMPLES = (
    "Example: veiltab researcher estimate study.toml --name rosa --identity pki/researcher-rosa --release wages"
    " --attributes education,wage --out wages.csv\n\n"
    "Analyses, each after --release wages:\n\n"
    "--attributes education,wage --given education\n\n"
    "--attributes education,wage --given education --ratio --reference education=none\n\n"
    "--total 'wage=high & education=none|school' --total 'wage=high & education=college' --ratio\n\n"
    "--attributes wage --compare wages-before\n\n"
    "--model 'wage=high ~ education + age' --odds-ratio\n\n"
    "--attributes education,wage --independence education\n\n"
    "--mean hours --given education\n\n"
    "--mean hours --given education --difference --reference education=none\n\n"
    "--quantile .5 --of hours --given education\n\n"
    "--linear 'wage ~ age + education'\n\n"
    "--correlation wage,hours\n\n"
    "--survival months:died=yes --given arm --until 24\n\n"
    "--survival 'months:died=yes ~ arm + stage' --ratio\n\n"
    "--mean wage --given age --linkage-error 0.02:0.005\n\n"
    "--mean wage --match-rates rates.json"
)

_CONTRASTS = {
    "difference": "Compare by difference: groups with --given (or their --mean), --total, or releases with --compare.",
    "ratio": "Compare by ratio; of shares --given a group it is the relative risk.",
    "odds-ratio": "Compare by odds ratio; with --model, e to the coefficients.",
}

_PLAIN = ("mean", "sum", "variance", "quantile", "of", "linear", "survival", "until", "reference", "totals", "model")
"""Options that are fields of a Question as they stand."""

_QUESTION = (
    click.option("--given", metavar="A[,B]", help="Shares of the other attributes given these."),
    *(click.option(f"--{name}", "contrast", flag_value=name, help=text) for name, text in _CONTRASTS.items()),
    click.option("--mean", default="", metavar="A", help="Mean of an attribute of numbers; with --given, by group."),
    click.option("--sum", default="", metavar="A", help="Sum of an attribute of numbers; with --given, by group."),
    click.option("--variance", default="", metavar="A", help="Variance of an attribute of numbers; perhaps by group."),
    click.option(
        "--quantile",
        type=click.FloatRange(0, 1),
        metavar="Q",
        help="With --of, a quantile, such as .5; perhaps by group.",
    ),
    click.option("--of", default="", metavar="A", help="The attribute of numbers of --quantile."),
    click.option(
        "--linear", default="", metavar="'A ~ B + C'", help="Linear regression of a number on numbers and categories."
    ),
    click.option("--correlation", metavar="A,B", help="Correlation of two attributes of numbers."),
    click.option(
        "--survival",
        default="",
        metavar="'TIME:A=X'",
        help="Share without an event by time, by group; with ~ B + C a Cox regression, with --ratio its ratios.",
    ),
    click.option("--until", type=float, metavar="T", help="With --survival, the mean time without an event up to T."),
    click.option("--reference", default="", metavar="A=X", help="Group to compare with; by default the first."),
    click.option(
        "--total",
        "totals",
        multiple=True,
        metavar="'A=X|Y & B=Z'",
        help="Rows of a subgroup; repeat it for more, which --difference or --ratio compares with the first.",
    ),
    click.option(
        "--model",
        default="",
        metavar="'A=X ~ B + C'",
        help="Logistic regression; with nothing before ~ a log-linear model. B * C adds their interaction.",
    ),
)


def question_options(command: Command) -> Command:
    """Give a command the options that say what to ask of a table; it takes them as `question`, a Question."""

    @functools.wraps(command)
    def with_question(*client: object, **values: Any) -> None:  # noqa: ANN401 - whatever click read
        from veiltab.researcher.analysis.contrasts import Contrast  # noqa: PLC0415 - not for tables
        from veiltab.researcher.questions.question import Question  # noqa: PLC0415 - not for tables

        given, correlation, contrast = (values.pop(name) for name in ("given", "correlation", "contrast"))
        question = Question(
            given=listed(given) if given else (),
            correlation=listed(correlation) if correlation else (),
            contrast=Contrast(contrast) if contrast else None,
            **{name: values.pop(name) for name in _PLAIN},
        )
        command(*client, question=question, **values)

    decorated: Any = with_question
    for option in reversed(_QUESTION):
        decorated = option(decorated)
    return cast("Command", decorated)
