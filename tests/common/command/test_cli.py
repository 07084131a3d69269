import errno
import json
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from veiltab.common.command.cli import emit, json_option, note, run
from veiltab.common.errors import (
    BudgetExceededError,
    ClosedRoundError,
    ConflictError,
    DeniedError,
    FailedReleaseError,
    IntegrityError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    SpentTokenError,
    UnavailableError,
    VeiltabError,
)


def run_with(monkeypatch: pytest.MonkeyPatch, command: click.Command, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["veiltab", *args])
    return run(command)


def raising(error: BaseException) -> click.Command:
    @click.command()
    @json_option
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (InvalidInputError, 2),
        (NotFoundError, 2),
        (DeniedError, 3),
        (BudgetExceededError, 3),
        (UnavailableError, 4),
        (NotReadyError, 4),
        (ConflictError, 5),
        (IntegrityError, 5),
        (SpentTokenError, 5),
        (ClosedRoundError, 5),
        (FailedReleaseError, 6),
        (VeiltabError, 1),
    ],
)
def test_a_refusal_is_explained_and_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: type[VeiltabError], code: int
) -> None:
    command = raising(kind("the thing is wrong", where="there", remedy="Do this."))
    assert run_with(monkeypatch, command) == code
    plain = capsys.readouterr()
    assert (plain.out, plain.err) == ("", "veiltab: there: the thing is wrong. Do this.\n")
    assert run_with(monkeypatch, command, "--json") == code
    machine = capsys.readouterr()
    assert json.loads(machine.out) == {
        "error": {"reason": kind.reason, "problem": "the thing is wrong", "where": "there", "remedy": "Do this."}
    }
    assert machine.err == plain.err


def test_every_kind_of_refusal_is_in_that_table() -> None:
    kinds = [kind for kind in VeiltabError.__subclasses__() if kind.__module__ == VeiltabError.__module__]
    assert len(kinds) == 11


def test_wrong_usage_is_bad_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    command = raising(ValueError())
    assert run_with(monkeypatch, command, "--no-such-option") == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert "No such option" in captured.err


@pytest.mark.parametrize(("high", "allowed"), [(None, "of at least 1"), (9, "from 1 to 9")])
def test_what_is_no_whole_number_is_refused_with_those_that_are_allowed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], high: int | None, allowed: str
) -> None:
    command = click.Command("c", params=[click.Option(["--rows"], type=click.IntRange(1, high))])
    assert run_with(monkeypatch, command, "--rows", "abc") == 2
    assert f"'--rows': 'abc' is not a whole number {allowed}." in capsys.readouterr().err


def test_an_interruption_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_with(monkeypatch, raising(KeyboardInterrupt())) == 130
    assert "Nothing acknowledged is lost" in capsys.readouterr().err


def test_what_nobody_foresaw_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        run_with(monkeypatch, raising(ZeroDivisionError()))


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (2, 2), ("text", 0)])
def test_a_command_may_name_its_exit_code(monkeypatch: pytest.MonkeyPatch, returned: object, code: int) -> None:
    @click.command()
    def command() -> object:
        return returned

    assert run_with(monkeypatch, command) == code


def test_help_ends_well(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_with(monkeypatch, raising(ValueError()), "--help") == 0
    assert "Print one JSON object and nothing else" in capsys.readouterr().out


def emitted(data: dict[str, object], *words: str, text: str = "") -> str:
    command = json_option(click.command()(lambda: emit(data, text)))
    return CliRunner().invoke(command, words, catch_exceptions=False).stdout


def test_json_is_one_object_of_plain_values() -> None:
    data = {
        "decimal": Decimal("0.5"),
        "fraction": Fraction(1, 4),
        "path": Path("a/b"),
        "array": np.arange(3),
        "scalar": np.float64(2),
        "text": "é\n",
    }
    out = emitted(data, "--json", text="for people")
    assert out.count("\n") == 1
    assert json.loads(out) == {
        "decimal": 0.5,
        "fraction": 0.25,
        "path": "a/b",
        "array": [0, 1, 2],
        "scalar": 2.0,
        "text": "é\n",
    }
    assert emitted(data, text="for people") == "for people\n"


def test_what_is_not_plain_is_not_guessed() -> None:
    with pytest.raises(TypeError, match="object"):
        emitted({"x": object()}, "--json")


HOSTILE = "\x1b[2J\x1b]0;owned\x07red\r\x9b1m\u202egnihton\x00\u3164\nsecond\tline"
PLAIN = " [2J ]0;owned red  1m gnihton  \nsecond\tline\n"


def test_no_text_commands_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    note(HOSTILE)
    assert emitted({}, text=HOSTILE) == capsys.readouterr().err == PLAIN
    out = emitted({"said": HOSTILE}, "--json")
    assert out.rstrip("\n").isprintable()
    assert json.loads(out) == {"said": HOSTILE}


def test_a_command_that_a_full_disk_ends_does_not_say_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "state/run")
    assert run_with(monkeypatch, raising(full)) == UnavailableError.exit_code
    assert capsys.readouterr().err == "veiltab: state/run: this party's disk is full. Mend that, and begin again.\n"


def test_a_file_that_this_user_may_not_use_is_a_refusal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    denied = PermissionError(errno.EACCES, "Permission denied", "pki/alice.pem")
    assert run_with(monkeypatch, raising(denied)) == InvalidInputError.exit_code
    assert capsys.readouterr().err.startswith("veiltab: pki/alice.pem: this user may not use it. Check its rights")
    with pytest.raises(PermissionError):
        run_with(monkeypatch, raising(PermissionError(errno.EPERM, "Operation not permitted")))


@pytest.mark.parametrize(
    "text", ["0.1", "0.3", "3.8860000000000000000001", "0.12345678901234567890123", "1E-6", "486.9"]
)
def test_json_prints_no_bound_below_itself(text: str) -> None:
    shown = json.loads(emitted({"epsilon": Decimal(text)}, "--json"), parse_float=Decimal)["epsilon"]
    assert Decimal(text) <= shown <= Decimal(text) * (1 + Decimal("1e-14"))
    assert len(text) > 15 or shown == Decimal(text)
