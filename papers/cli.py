"""`veiltab lab`: what the papers compute."""

import click

from veiltab.papers.privacy.privacy_cli import privacy
from veiltab.papers.reproduce_cli import reproduce


@click.group(commands=[privacy, reproduce])
def lab() -> None:
    """Account for any mechanism on a sample, and compute the papers anew. Every command needs the extra `papers`.

    Example: veiltab lab privacy amplify --scheme wor --population 1000 --sample 400 --epsilon 1
    """
