"""Tokens are kept as hashes, expire, are revoked, and are good for their scopes alone."""

import hashlib
from pathlib import Path

import pytest

from tests.conftest import refuses
from tests.researcher.api.asking import Program
from veiltab.common.errors import ConflictError, DeniedError, InvalidInputError, NotFoundError
from veiltab.researcher.api.tokens import FILE, Scope, Tokens


def test_a_token_is_nowhere_in_its_file(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    kept, token = tokens.add("laptop", frozenset({Scope.READ}), 1)
    tokens.close()
    secret = token.rpartition("-")[2] if token.count("-") == 2 else token[12:]
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert hashlib.sha256(token.encode()).digest() in files
    assert secret.encode() not in files
    assert kept.id.encode() in files
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_a_token_is_good_until_it_expires_or_is_revoked(tmp_path: Path) -> None:
    now = [1_000_000.0]
    tokens = Tokens(tmp_path, lambda: now[0])
    kept, token = tokens.add("laptop", frozenset({Scope.READ, Scope.REQUEST}), 2)
    assert tokens.check(token) == kept
    assert kept.expires == 1_000_000 + 2 * 86_400
    now[0] = kept.expires - 0.5
    tokens.check(token)
    now[0] = kept.expires
    with pytest.raises(DeniedError, match="expired"):
        tokens.check(token)
    now[0] = 1_000_001.0
    revoked = tokens.revoke("laptop")
    assert revoked.state(now[0]) == "revoked"
    with pytest.raises(DeniedError, match="revoked"):
        tokens.check(token)
    now[0] += 5
    assert tokens.revoke("laptop").revoked == 1_000_001
    with pytest.raises(NotFoundError):
        tokens.revoke("desktop")


def test_another_text_is_no_token(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    _, token = tokens.add("laptop", frozenset({Scope.READ}), 1)
    last = "B" if token[-1] == "A" else "A"
    for other in ("", token[:-1], token[:-1] + last, token + "A", token.upper(), f"vt-00000000-{token[12:]}", "é"):
        with pytest.raises(DeniedError, match="not known"):
            tokens.check(other)


@pytest.mark.parametrize(
    ("label", "scopes", "days"),
    [
        ("", {Scope.READ}, 1),
        ("Laptop", {Scope.READ}, 1),
        ("a b", {Scope.READ}, 1),
        ("a", set(), 1),
        ("a", {Scope.READ}, 0),
        ("a", {Scope.READ}, 401),
        ("a", {Scope.READ}, float("nan")),
        ("a" * 41, {Scope.READ}, 1),
    ],
)
def test_what_makes_no_token_is_refused(tmp_path: Path, label: str, scopes: set[Scope], days: float) -> None:
    tokens = Tokens(tmp_path)
    with pytest.raises(InvalidInputError):
        tokens.add(label, frozenset(scopes), days)
    assert tokens.all() == ()


def test_a_label_is_taken_once(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    tokens.add("laptop", frozenset({Scope.READ}), 1)
    with pytest.raises(ConflictError):
        tokens.add("laptop", frozenset({Scope.READ}), 1)


def test_a_folder_without_tokens_is_said(tmp_path: Path) -> None:
    with refuses(NotFoundError, where=str(tmp_path)):
        Tokens.kept_in(tmp_path)
    assert not list(tmp_path.iterdir())


def test_another_process_revokes(program: Program, tmp_path: Path) -> None:
    program.with_scopes(Scope.READ)
    assert program.ask("/v1/study").status_code == 200
    other = Tokens(tmp_path, lambda: program.now[0])
    other.revoke("t0")
    other.close()
    answer = program.ask("/v1/study")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.json()["detail"] == "the token is revoked"


NEEDS = {
    "/v1/study": Scope.READ,
    "/v1/releases": Scope.READ,
    "/v1/releases/wages": Scope.READ,
    "/v1/releases/wages/table": Scope.READ,
    "/v1/releases/wages/report": Scope.READ,
    "/v1/releases/linked/microdata?rows=10&attributes=sex&attributes=age": Scope.MICRODATA,
    "/v1/releases/wages/certificate": Scope.CERTIFICATE,
}


@pytest.mark.parametrize("path", NEEDS)
def test_a_token_is_good_for_its_scope(program: Program, path: str) -> None:
    program.with_scopes(*(scope for scope in Scope if scope is not NEEDS[path]))
    assert program.ask(path).status_code == 403
    assert program.with_scopes(NEEDS[path]).ask(path).status_code == 200
    program.token = ""
    assert program.ask(path).status_code == 401


def test_to_ask_takes_a_scope_of_its_own(program: Program) -> None:
    program.with_scopes(Scope.READ, Scope.MICRODATA, Scope.CERTIFICATE)
    assert program.ask("/v1/releases", "POST", json={"epsilon": "1"}).status_code == 403
    assert program.made.asked == []
    assert program.with_scopes(Scope.REQUEST).ask("/v1/releases", "POST", json={"epsilon": "1"}).status_code == 202
    assert len(program.made.asked) == 1
