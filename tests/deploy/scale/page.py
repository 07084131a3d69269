"""The page about scale shows commands with what they print; `python -m tests.deploy.scale.page` writes that anew."""

import re
from pathlib import Path

from click.testing import CliRunner

from veiltab.deploy.plan.plan_cli import plan

PAGE = Path(__file__).parents[3] / "docs/how-to/scale.md"

_SHOWN = re.compile(r"^(```console\n\$ veiltab plan )(.*(?:\\\n.*)*)\n(?:.*\n)*?```$", re.MULTILINE)


def commands(text: str) -> list[str]:
    """Return what follows `veiltab plan` in the commands of a page."""
    return [match[2] for match in _SHOWN.finditer(text)]


def renewed(text: str) -> str:
    """Return a page with what its commands print now."""

    def shown(match: re.Match[str]) -> str:
        ran = CliRunner().invoke(plan, match[2].replace("\\\n", " ").split(), catch_exceptions=False)
        return f"{match[1]}{match[2]}\n{ran.stdout}```"

    return _SHOWN.sub(shown, text)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
