"""`veiltab study`: make a study file without writing it by hand, and say what is wrong with one."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import PATH, emit, wants_json
from veiltab.common.command.new_files import refuse_present
from veiltab.common.errors import InvalidInputError
from veiltab.common.storage.named_files import written_as_named
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.source_options import table_options

if TYPE_CHECKING:
    from veiltab.common.study.drafts.draft import Draft
    from veiltab.common.study.file import Study
    from veiltab.common.study.problems import Problem
    from veiltab.curator.check.drafted_table import TableProposal
    from veiltab.deploy.study.parties import Parties


@click.group()
def study() -> None:
    """Make the study file, and check it before anybody uses it.

    Example: veiltab study merge --study wages --out study.toml
    """


@study.command(epilog="Example: veiltab study draft --name alice --table alice.csv")
@click.option("--name", required=True, help="The curator's name.")
@table_options
@click.option("--id", "id_columns", multiple=True, metavar="COLUMN", help="A column that names a respondent.")
@click.option(
    "--identity",
    "with_identity",
    is_flag=True,
    help="There is no common number: names, birth date, sex and postcode name a person (docs/linkage.md).",
)
@click.option(
    "--date-order",
    type=click.Choice(["ymd", "dmy", "mdy"]),
    help="How the table writes dates of birth, where that is not clear; with --identity.",
)
@click.option(
    "--first-year",
    type=click.IntRange(1000, 9900),
    help="The earliest year that two digits mean in its dates: with 1926, 25 is 2025 and 26 is 1926.",
)
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="FIELD=COLUMN",
    help="The column of given, family, birth, sex, postcode, number or one with its kind, such as birth=geboren or"
    " card:number=carte; with --identity. Repeat it for a field of several columns.",
)
@click.option("--without", multiple=True, metavar="COLUMN", help="A column that stays out.")
@click.option(
    "--missing",
    multiple=True,
    metavar="COLUMN=TEXT",
    help="A text that stands for a missing value in a column, such as age=99.",
)
@click.option(
    "--quantiles", "use_quantiles", is_flag=True, help="Edges at quartiles of the table: every party reads them."
)
@click.option("--numbers", "as_numbers", is_flag=True, help="Grids instead of bins, for means: see docs/numbers.md.")
@click.option(
    "--as-is", is_flag=True, help="Row 1 holds the names of columns, and all others people, however they look."
)
@click.option("--yes", is_flag=True, help="Take every proposal.")
@click.option("--out", type=PATH, help="File to write; NAME.toml by default.")
def draft(
    name: str,
    table: TableAddress,
    id_columns: tuple[str, ...],
    with_identity: bool,
    date_order: str | None,
    first_year: int | None,
    fields: tuple[str, ...],
    without: tuple[str, ...],
    missing: tuple[str, ...],
    use_quantiles: bool,
    as_numbers: bool,
    as_is: bool,
    yes: bool,
    out: Path | None,
) -> None:
    """Propose a curator's part of the study from its own table, ask about each attribute, and write what is confirmed.

    What is shown on the terminal quotes the table. The file holds only what was confirmed; every party will read it.
    With --json and without --yes, the command asks nothing and writes nothing.
    """
    from veiltab.common.study.drafts.draft import draft_from_bytes
    from veiltab.common.study.toml_text import toml_text
    from veiltab.curator.check.drafted_table import propose_table
    from veiltab.curator.formats.opening import open_table
    from veiltab.deploy.study.dialogue import check_person_is_there, confirm_table

    if (with_identity and id_columns) or ((date_order or fields) and not with_identity):
        raise InvalidInputError(
            "--id and --identity exclude one another, and --date-order and --field go with --identity",
            remedy="Give --id COLUMN, or --identity.",
        )
    path = out or Path(f"{name}.toml")
    # A large table is read for minutes: what is wrong beside it is said before.
    if yes or not wants_json():
        refuse_present(path)
    if not (yes or wants_json()):
        try:
            check_person_is_there()
        except InvalidInputError:
            open_table(table)  # a name that is misspelt comes first
            raise
    texts, by_field = _missing_texts(missing), _named_fields(fields)

    def propose(more: Mapping[str, Collection[str]]) -> "TableProposal":
        together = {column: {*texts.get(column, ()), *more.get(column, ())} for column in {*texts, *more}}
        return propose_table(
            table,
            name,
            id_columns=id_columns,
            without=without,
            use_quantiles=use_quantiles,
            as_numbers=as_numbers,
            missing=together,
            with_identity=with_identity,
            date_order=date_order or "",
            first_year=first_year,
            fields=by_field,
            is_as_it_is=as_is,
        )

    proposal = propose({})
    if wants_json() and not yes:
        emit({"file": None, **proposal.as_dict()}, "")
        return
    if not wants_json():
        proposal = confirm_table(proposal, propose, takes_all=yes)
    if not proposal.attributes:
        raise InvalidInputError(
            f"no column is left to make an attribute (the table: {proposal.description})",
            where=table.label,
            remedy="Add a column with categories, or see by what the columns of the file are separated.",
        )
    text = toml_text(proposal.draft())
    draft_from_bytes(text.encode(), str(path))
    _write(path, text)
    many = len(proposal.attributes)
    columns = ", ".join(one.column for one in proposal.omissions if one.column)
    rest = f" (columns that stay out: {columns})" if columns else ""
    line = f"{path} is written, with {many} attribute{'' if many == 1 else 's'}{rest}. Read it: every party will."
    emit({"file": path, **proposal.as_dict()}, line)


def _named_fields(options: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return identity field -> the columns that make it up, in the order of the options."""
    from veiltab.common.study.identity_table import field_of

    fields = dict[str, tuple[str, ...]]()
    for option in options:
        name, equals, column = option.partition("=")
        if not equals or not column:
            raise InvalidInputError(
                f"{option[:60]!r} names no field and column",
                where="--field",
                remedy="Write it like --field birth=geboren.",
            )
        field_of(name)
        fields[name] = (*fields.get(name, ()), column)
    return fields


def _missing_texts(options: Sequence[str]) -> dict[str, set[str]]:
    """Return column -> texts that stand for a missing value there."""
    texts = dict[str, set[str]]()
    for option in options:
        column, equals, text = option.rpartition("=")
        if not equals or not column:
            raise InvalidInputError(
                f"{option[:60]!r} names no column", where="--missing", remedy="Write it like --missing age=99."
            )
        texts.setdefault(column, set()).add(text.strip())
    return texts


@study.command(
    epilog="Example: veiltab study merge alice.toml bob.toml --study wages --hub alice --server cloud.example.org:7400"
    " --curator alice=alice.example.org:7401 --curator bob=bob.example.org:7402"
    " --researcher rosa=rosa.example.org:7410 --out study.toml\n\n"
    "A file to edit: veiltab study merge --study wages --out study.toml"
)
@click.argument("paths", metavar="[DRAFT.toml...]", nargs=-1, type=PATH)
@click.option("--study", "study_id", help="Id of the study.")
@click.option("--title", help="One line for people; by default the id.")
@click.option("--epsilon", default="1", show_default=True, help="Budget of each curator, over all releases; nats.")
@click.option("--delta", help="Delta of that budget; without it epsilon is pure.")
@click.option("--server", metavar="[NAME=]HOST:PORT", help="Where the server listens; its name is cloud by default.")
@click.option("--curator", "curators", multiple=True, metavar="NAME=HOST:PORT", help="Where a curator listens.")
@click.option("--researcher", "researchers", multiple=True, metavar="NAME=HOST:PORT", help="A researcher.")
@click.option("--relay", metavar="HOST:PORT", help="A relay; curators without an endpoint are called through it.")
@click.option("--hub", help="The curator whose rows are those of every table; presence in it is not protected.")
@click.option(
    "--alignment",
    type=click.Choice(["oblivious", "tokens"]),
    default="oblivious",
    show_default=True,
    help="How the others find their people among the hub's: by tokens each can test every name it can think of.",
)
@click.option("--yes", is_flag=True, help="Take a proposal for everything that is not given, and ask nothing.")
@click.option("--out", type=PATH, default="study.toml", show_default=True, help="File to write.")
def merge(
    paths: tuple[Path, ...],
    study_id: str | None,
    title: str | None,
    epsilon: str,
    delta: str | None,
    server: str | None,
    curators: tuple[str, ...],
    researchers: tuple[str, ...],
    relay: str | None,
    hub: str | None,
    alignment: str,
    yes: bool,
    out: Path,
) -> int:
    """Make the study file of the drafts of its curators, or say where they contradict one another.

    On a terminal, the command asks for what is not given. Without drafts it writes a study file to edit, with every key
    and what it means; of the options --study alone counts then.
    """
    from veiltab.common.core.numbers.rounding import parse_delta, parse_epsilon
    from veiltab.common.study.drafts.merging import StudyFrame, floors, merged_tables, remarks
    from veiltab.common.study.file import study_from_bytes
    from veiltab.common.study.toml_text import toml_text
    from veiltab.deploy.study.parties import Parties

    refuse_present(out)
    if not paths:
        _write_template(study_id or "wages", out)
        return 0
    parties = Parties(takes_all=yes, has_relay=relay is not None)
    drafts, problems = _drafts(paths, parties)
    if problems:
        lines = [f"  {problem}" if path is None else f"  {path}: {problem}" for path, problem in problems]
        plain = [{"file": path, **asdict(problem)} for path, problem in problems]
        emit({"ok": False, "file": None, "problems": plain}, "\n".join([f"{out} is not written", *lines]))
        return InvalidInputError.exit_code
    names = [draft.curator for draft in drafts]
    chosen_id = parties.study(study_id)
    frame = StudyFrame(
        id=chosen_id,
        title=title or chosen_id,
        epsilon=parse_epsilon(epsilon),
        delta=None if delta is None else parse_delta(delta),
        server=parties.server(server),
        curators=parties.curators(curators, names),
        researchers=parties.researchers(researchers),
        hub=parties.hub(hub, names),
        relay=relay,
        alignment=alignment,
    )
    text = toml_text(merged_tables(drafts, frame))
    study = study_from_bytes(text.encode(), str(out))
    facts = _facts(study)
    _write(out, text)
    notes = [*_joining(study), *remarks(drafts)]
    lines = [
        f"{out} is written. Every party gets the same bytes.",
        *(f"  {name}: {value}" for name, value in facts.items()),
        f"  budget: epsilon {epsilon}{f' at delta {delta}' if delta else ''} at each curator",
        f"  every release: {', '.join(f'{name} = {value}' for name, value in floors(frame.epsilon).items())}",
        *(f"  {line}" for line in notes),
        f"Next: veiltab pki init {out} --out pki",
    ]
    emit({"ok": True, "file": out, "problems": [], **facts, "notes": notes}, "\n".join(lines))
    return 0


def _write_template(study_id: str, out: Path) -> None:
    from veiltab.common.study.drafts.template import study_template
    from veiltab.common.study.file import study_from_bytes

    text = study_template(study_id)
    study_from_bytes(text.encode(), "--study")
    _write(out, text)
    emit({"file": out}, f"{out} is written. Edit it, then run `veiltab study check {out}`.")


def _drafts(paths: Sequence[Path], parties: "Parties") -> "tuple[list[Draft], Sequence[tuple[Path | None, Problem]]]":
    """Read drafts; return all that is wrong with each file, and if nothing is, where they contradict one another."""
    from veiltab.common.study.drafts.draft import draft_from_bytes, draft_problems
    from veiltab.common.study.drafts.merging import conflicts, effects, missing_steps, with_steps
    from veiltab.common.study.file import read_file

    files = {path: read_file(path, "draft") for path in paths}
    problems = [(path, problem) for path, data in files.items() for problem in draft_problems(data)]
    if problems:
        return [], problems
    drafts = [draft_from_bytes(files[path], str(path)) for path in paths]
    if (steps := missing_steps(drafts)) and parties.takes_steps(steps, effects(drafts, steps)):
        drafts = [with_steps(draft, steps) for draft in drafts]
    return drafts, [(None, conflict) for conflict in conflicts(drafts)]


@study.command(epilog="Example: veiltab study check study.toml")
@click.argument("path", metavar="FILE.toml", type=PATH)
def check(path: Path) -> int:
    """Check a study file or a draft: say what is wrong, with its line if it has one and the key that may be meant."""
    from veiltab.common.study.drafts.draft import draft_from_bytes, draft_problems, is_draft
    from veiltab.common.study.file import read_file, study_from_bytes
    from veiltab.common.study.problems import study_problems

    data = read_file(path)
    facts: dict[str, object] = {}
    joining: list[str] = []
    if is_draft(data):
        problems = draft_problems(data)
        if not problems:
            draft = draft_from_bytes(data, str(path))
            facts = {"curator": draft.curator, "attributes": ", ".join(draft.names)}
    else:
        problems = study_problems(data)
        if not problems:
            study = study_from_bytes(data, str(path))
            facts, joining = _facts(study), _joining(study)
    verdict = "ready" if not problems else f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    lines = [f"{path}: {verdict}", *(f"  {problem}" for problem in problems)]
    lines += [*(f"  {name}: {value}" for name, value in facts.items()), *(f"  {line}" for line in joining)]
    plain = [asdict(problem) for problem in problems]
    emit({"ok": not problems, "file": path, "problems": plain, **facts, "notes": joining}, "\n".join(lines))
    return InvalidInputError.exit_code if problems else 0


def _facts(study: "Study") -> dict[str, object]:
    """Return what a study file comes to."""
    curators = {c.name: len(study.attributes_of(c.name)) for c in study.curators}
    facts: dict[str, object] = {"study": study.id, "digest": study.digest}
    facts["attributes"] = ", ".join(f"{name} has {count}" for name, count in curators.items()) or "none"
    if study.curators:
        facts |= {"hub": study.hub, "alignment": study.alignment}
    if study.identity is not None:
        facts["keys"] = len(study.identity.ladder)
    if study.questions:
        facts["questions"] = len(study.questions)
    return facts


def _joining(study: "Study") -> list[str]:
    """Return who learns of whose presence, and which keys a curator lacks a field of."""
    from veiltab.common.study.identity_table import absent_fields
    from veiltab.common.study.missing import presence_sentence

    lines = [presence_sentence(study)] if study.curators else []
    if study.identity is None:
        return lines
    absent = absent_fields(study.identity, study.curators)
    all_keys = len(study.identity.ladder)
    return [
        *lines,
        *(f"{len(keys)} of {all_keys} keys need {field}, which {name} lacks" for name, field, keys in absent),
    ]


def _write(path: Path, text: str) -> None:
    """Write a file that is not there yet.

    Raises:
        ConflictError: it is there.
        InvalidInputError: it cannot be written.
    """
    refuse_present(path)
    with written_as_named(path) as file:
        file.write(text.encode())
