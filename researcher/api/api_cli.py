"""`veiltab researcher http` and `token`: the service over HTTP, and who may ask it."""

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import PATH, emit
from veiltab.common.command.config import ENVIRONMENT
from veiltab.common.command.options import identity_option, study_argument
from veiltab.common.errors import InvalidInputError
from veiltab.common.extras import importing
from veiltab.common.web.http_options import HttpOptions, check_origin

if TYPE_CHECKING:
    from veiltab.researcher.api.tokens import Token

_state_option = click.option(
    "--state", "state", required=True, type=PATH, help="Folder of the tokens; not the one of `serve`."
)
_SCOPES = ("read", "microdata", "request", "certificate")


@click.command(
    epilog="Example: veiltab researcher http study.toml --identity pki/researcher-rosa --state state-http"
    " --listen 127.0.0.1:7480"
)
@study_argument
@identity_option
@_state_option
@click.option("--listen", required=True, metavar="[HOST:]PORT", help="Where; without HOST on the loopback interface.")
@click.option("--certificate", type=PATH, help="PEM file that clients see, with its chain; by default the party's own.")
@click.option("--key", type=PATH, help="PEM file with its key.")
def http(
    study_path: Path, identity_folder: Path, state: Path, listen: str, certificate: Path | None, key: Path | None
) -> None:
    """Answer R, notebooks and programs over HTTPS with JSON, for one researcher or analyst.

    /openapi.json describes what can be asked. Who asks has a token of `veiltab researcher token`, or the certificate
    of the party itself. It runs beside `serve`, and asks it as every other command does.
    """
    with importing("api", "answering over HTTP"):
        from veiltab.researcher.api.serving_api import serve_api
    from veiltab.researcher.client.client import Client

    options = HttpOptions(address=listen, certificate=certificate, key=key)
    with Client(study_path, identity=identity_folder) as client:
        serve_api(client, identity_folder, state, options)


@click.group(epilog="Example: veiltab researcher token add --state state-http --label laptop --scope read")
def token() -> None:
    """Make, list and revoke the tokens of `veiltab researcher http`."""


@token.command(
    epilog="Example: veiltab researcher token add --state state-http --label laptop --scope read --days 90\n\n"
    "A link: veiltab researcher token add study.toml --identity pki/researcher-rosa --state state-http --label board"
    " --release cover --at https://rosa.example.org:7480"
)
@click.argument("study_path", metavar="[STUDY.toml]", required=False, type=PATH)
@click.option(
    "--identity",
    "identity_folder",
    type=PATH,
    envvar=ENVIRONMENT["identity"],
    help="Of a link: folder of the researcher's certificate.",
)
@_state_option
@click.option("--label", required=True, help="Whose it is, or for what: a-z, 0-9 and -.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(_SCOPES),
    default=("read",),
    show_default=True,
    help="What it is good for; repeat it for more. `request` spends curators' budgets.",
)
@click.option("--days", type=float, default=30.0, show_default=True, help="Days until it expires.")
@click.option("--release", "release_name", help="Make a link that reads this release alone: its label or id.")
@click.option(
    "--at", "origin", metavar="https://HOST[:PORT]", help="Of a link: where browsers reach `veiltab researcher http`."
)
def add(
    study_path: Path | None,
    identity_folder: Path | None,
    state: Path,
    label: str,
    scopes: tuple[str, ...],
    days: float,
    release_name: str | None,
    origin: str | None,
) -> None:
    """Make a token and print it: this once, for only its hash is kept.

    With --release it is a link that opens the report of that release in a browser, and reads nothing else. Anyone who
    has the link can open it, until it expires or is revoked by its label.
    """
    from veiltab.researcher.api.report_link import report_link
    from veiltab.researcher.api.tokens import Scope, Tokens
    from veiltab.researcher.client.client import Client

    if release_name is None and origin is None:
        with closing(Tokens(state)) as tokens:
            token, text = tokens.add(label, frozenset(map(Scope, scopes)), days)
        emit(_facts(token, token.created) | {"token": text}, f"{text}\n{_line(token, token.created)}")
        return
    if study_path is None or identity_folder is None or release_name is None or origin is None or scopes != ("read",):
        raise InvalidInputError(
            "a link is not described whole",
            where="--release",
            remedy="Give STUDY.toml, --identity, --release and --at, and no other scope than read.",
        )
    check_origin(origin, "--at")
    with Client(study_path, identity=identity_folder) as client:
        release = client.release(release_name)
        attributes = release.domain().names  # a release without a result is refused
    with closing(Tokens(state)) as tokens:
        token, text = tokens.add(label, frozenset({Scope.READ}), days, release.id)
    address = report_link(origin, release.id, text)
    facts = _facts(token, token.created) | {"attributes": attributes, "link": address}
    emit(facts, f"{address}\n{_line(token, token.created)}")


@token.command("list", epilog="Example: veiltab researcher token list --state state-http")
@_state_option
def list_(state: Path) -> None:
    """List tokens, without what they are."""
    from veiltab.researcher.api.tokens import Tokens

    now = datetime.now(UTC).timestamp()
    with closing(Tokens.kept_in(state)) as tokens:
        every = tokens.all()
    text = "\n".join(_line(one, now) for one in every) or "No tokens yet."
    emit({"tokens": [_facts(one, now) for one in every]}, text)


@token.command(epilog="Example: veiltab researcher token revoke --state state-http --label laptop")
@_state_option
@click.option("--label", required=True, help="Of the token.")
def revoke(state: Path, label: str) -> None:
    """Refuse a token from now on."""
    from veiltab.researcher.api.tokens import Tokens

    with closing(Tokens.kept_in(state)) as tokens:
        token = tokens.revoke(label)
    emit(_facts(token, token.created), _line(token, token.created))


def _facts(one: "Token", now: float) -> dict[str, object]:
    facts: dict[str, object] = {name: getattr(one, name) for name in ("label", "id", "created", "expires")}
    scopes = sorted(scope.value for scope in one.scopes)
    return facts | {"scopes": scopes, "release": one.release or None, "state": one.state(now)}


def _line(one: "Token", now: float) -> str:
    scopes = ", ".join(sorted(scope.value for scope in one.scopes))
    until = f"until {datetime.fromtimestamp(one.expires, UTC):%Y-%m-%d %H:%M} UTC"
    return "  ".join(filter(None, (one.label, scopes, one.state(now), until, one.release and f"release {one.release}")))
