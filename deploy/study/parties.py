"""The parties of a study that is merged from drafts: what the options say, and what they do not."""

import sys
from collections.abc import Sequence

import click

from veiltab.common.command.cli import note
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.members import RELAYED, check_once

HUB_MEANS = (
    "The rows of the hub are the rows of every table: who is not in its table is in none. That a person is in it is not"
    " protected, and every other curator learns which of its own people the hub has. Take the curator whose list of"
    " people is no secret to the others, such as a population register."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parties:
    """Completes what the options say of a study and its parties: asks on a terminal, or proposes.

    Args:
        takes_all: whether to take every proposal, and to ask nothing.
        has_relay: whether who is not given an endpoint is called through the relay.
    """

    takes_all: bool
    has_relay: bool = False

    def study(self, name: str | None) -> str:
        """Return the study's id."""
        return name or self._answer("--study", "Id of the study", "study")

    def server(self, option: str | None) -> tuple[str, str]:
        """Return the server's name and endpoint."""
        text = option or self._answer("--server", "Server, [NAME=]HOST:PORT", "cloud.example.org:7400")
        return _party(text, "--server") if "=" in text else ("cloud", text)

    def curators(self, texts: Sequence[str], names: Sequence[str]) -> dict[str, str]:
        """Return the endpoint of each curator.

        Raises:
            InvalidInputError: an endpoint is of somebody without a draft, or of somebody who has one already.
        """
        endpoints = _parties(texts, "--curator")
        for name in endpoints:
            if name not in names:
                raise InvalidInputError(
                    f"there is no draft of {name[:60]!r}", where="--curator", remedy=f"Drafts: {', '.join(names)}."
                )
        for port, name in enumerate(names, 7401):
            if name not in endpoints and self.has_relay:
                endpoints[name] = RELAYED
            elif name not in endpoints:
                proposal = f"{name}.example.org:{port}"
                endpoints[name] = self._answer(f"--curator {name}=HOST:PORT", f"Curator {name}, HOST:PORT", proposal)
        return endpoints

    def hub(self, option: str | None, names: Sequence[str]) -> str:
        """Return the hub, which a person names: there is no proposal.

        Raises:
            InvalidInputError: nobody names it, or it has no draft.
        """
        if option is None and (self.takes_all or not sys.stdin.isatty()):
            raise InvalidInputError("nobody is the hub", where="--hub", remedy=f"Name it. {HUB_MEANS}")
        if option is None:
            note(HUB_MEANS)
            return str(click.prompt("Hub", type=click.Choice([*names]), err=True))
        if option not in names:
            raise InvalidInputError(
                f"there is no draft of {option[:60]!r}", where="--hub", remedy=f"Drafts: {', '.join(names)}."
            )
        return option

    def researchers(self, texts: Sequence[str]) -> dict[str, str]:
        """Return the endpoint of each researcher."""
        proposal = f"rosa={RELAYED if self.has_relay else 'rosa.example.org:7410'}"
        return _parties(texts or [self._answer("--researcher", "Researcher, NAME=HOST:PORT", proposal)], "--researcher")

    def takes_steps(self, steps: Sequence[str], effects: Sequence[str]) -> bool:
        """Return whether ids that are written in different ways become alike by steps of normalisation.

        Args:
            effects: what they do to the ids of each table.
        """
        named = " and ".join(f'"{step}"' for step in steps)
        for effect in effects:
            note(f"with {named}: {effect}")
        issue = f"ids are written in different ways; with {named} in normalise they can match"
        if self.takes_all or not sys.stdin.isatty():
            note(f"{issue}: {'taken' if self.takes_all else 'give --yes to take that'}")
            return self.takes_all
        return click.confirm(f"{issue[0].upper()}{issue[1:]}. Take it?", default=True, err=True)

    def _answer(self, option: str, question: str, proposal: str) -> str:
        if self.takes_all:
            note(f"{option} is not given: {proposal} is taken, to be edited")
            return proposal
        if not sys.stdin.isatty():
            raise InvalidInputError(
                "this is not given, and nobody can be asked: the standard input is not a terminal",
                where=option,
                remedy="Give it, or add --yes to take a proposal.",
            )
        answer: str = click.prompt(question, default=proposal, err=True)
        return answer.strip()


def _parties(texts: Sequence[str], option: str) -> dict[str, str]:
    parties = [_party(text, option) for text in texts]
    check_once(f"{option} names", [name for name, _ in parties], "Give each party one endpoint.")
    return dict(parties)


def _party(text: str, option: str) -> tuple[str, str]:
    name, equals, endpoint = text.partition("=")
    if not equals:
        raise InvalidInputError(
            f"{text[:60]!r} is not NAME=HOST:PORT", where=option, remedy="Such as alice=alice.example.org:7401."
        )
    return name.strip(), endpoint.strip()
