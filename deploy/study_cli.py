"""`veiltab study`: make a study file without writing it by hand, and say what is wrong with one."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import EXIT_CODES, PATH, emit, json_option
from veiltab.common.errors import ConflictError, InvalidInputError
from veiltab.common.storage.files import written_whole

if TYPE_CHECKING:
    from veiltab.common.study.file import Study


@click.group(epilog=EXIT_CODES)
def study() -> None:
    """Make the study file, and check it before anybody uses it.

    Example: veiltab study init --out study.toml
    """


@study.command(epilog="Example: veiltab study init --study wages --out study.toml")
@click.option("--study", "study_id", default="wages", show_default=True, help="Id of the study.")
@click.option("--out", type=PATH, default="study.toml", show_default=True, help="File to write.")
@json_option
def init(study_id: str, out: Path, as_json: bool) -> None:
    """Write a study file to edit, with every key and what it means.

    Where the tables are there, each curator drafts its part from its own table instead, with `veiltab study draft`.
    """
    from veiltab.common.study.file import study_from_bytes
    from veiltab.common.study.template import study_template

    text = study_template(study_id)
    study_from_bytes(text.encode(), "--study")
    _write(out, text)
    emit(as_json, {"file": out}, f"{out} is written. Edit it, then run `veiltab study check {out}`.")


@study.command(epilog="Example: veiltab study check study.toml")
@click.argument("path", metavar="FILE.toml", type=PATH)
@json_option
def check(path: Path, as_json: bool) -> int:
    """Check a study file and say all that is wrong with it: the line, the problem, and the key that may be meant."""
    from dataclasses import asdict

    from veiltab.common.study.file import study_from_bytes
    from veiltab.common.study.problems import read_with_problems

    data, problems = read_with_problems(path)
    facts = {} if problems else _facts(study_from_bytes(data, str(path)))
    verdict = "ready" if not problems else f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    lines = [f"{path}: {verdict}", *(f"  {problem}" for problem in problems)]
    lines += [f"  {name}: {value}" for name, value in facts.items()]
    plain = [asdict(problem) for problem in problems]
    emit(as_json, {"ok": not problems, "file": path, "problems": plain, **facts}, "\n".join(lines))
    return InvalidInputError.exit_code if problems else 0


def _facts(loaded: "Study") -> dict[str, object]:
    """Return what a study file comes to."""
    curators = {c.name: len(loaded.attributes_of(c.name)) for c in loaded.curators}
    facts: dict[str, object] = {"study": loaded.id, "digest": loaded.digest}
    facts["attributes"] = ", ".join(f"{name} has {count}" for name, count in curators.items()) or "none"
    if loaded.questions:
        facts["questions"] = len(loaded.questions)
    return facts


def _write(path: Path, text: str) -> None:
    """Write a file that is not there yet.

    Raises:
        ConflictError: it is there.
        InvalidInputError: it cannot be written.
    """
    if path.exists():
        raise ConflictError(
            "this file is there already", where=str(path), remedy="Name another one with --out, or move this one away."
        )
    try:
        with written_whole(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise InvalidInputError(
            f"the file cannot be written ({error.strerror})", where=str(path), remedy="Name another one with --out."
        ) from None
