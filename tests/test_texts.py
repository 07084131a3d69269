"""Every text that leaves a party stands in texts.txt, for a person to read: `python -m tests.test_texts` writes it.

Numbers, dates and digests stand there as #. Entries of the registry have files of their own (tests/deploy/registry).
"""

import ast
import json
import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory

from click.testing import CliRunner

from tests.conftest import STUDY, request_with, reserve, spec_with
from tests.curator.audit.exported_evidence import PEM, certificate, contents, open_office
from tests.curator.told_people import ID, OTHER, hold, settings, source, to
from tests.researcher.test_report import make_report
from tests.rooms import SOURCE, rooms
from veiltab.common.release.guarantees import release_card
from veiltab.common.release.modes import Sampling
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.study.file import study_from_bytes
from veiltab.curator.records.store import CuratorStore
from veiltab.deploy.cli import veiltab
from veiltab.researcher.api.report_link import link_page
from veiltab.researcher.report.report import render

GOLDEN = Path(__file__).with_name("texts.txt")


def cards() -> Iterator[str]:
    for changes in (
        {},
        {"delta": Decimal("1e-6")},
        {"canaries": 20_000},
        {"sampling": Sampling.SERVER},
        {"scheme": "wr"},
    ):
        yield from (f"{name}: {limit}" for name, limit in release_card(release_of(spec_with(**changes))).rows_in_full)


def notices(folder: Path) -> Iterator[str]:
    store = CuratorStore(folder / "notices.sqlite")
    for name in (ID, OTHER):
        store.releases.add(request_with(release_id=name), 1)
    hold(store)
    store.releases.set_state(OTHER, ReleaseState.DENIED)
    wanted = settings(folder, to(folder, hook="jsons://example.org") + "budget = 0.001\ncertificate_days = 3650\n")
    events = source(store, wanted)
    reserve(events.ledger, spec_with(release_id=ID))
    for notice in events.events(2_000_000_000, 0):
        yield from (notice.title, notice.body(1))
    store.close()


def verifications(folder: Path) -> Iterator[str]:
    office = open_office(folder, STUDY)
    (folder / "ca.pem").write_bytes(PEM)
    (folder / "wages.certificate").write_text(certificate(study_from_bytes(STUDY, "study.toml")).to_text())
    evidence = office.export("evidence.zip")
    for file in (folder / "wages.certificate", evidence):
        words = ("verify", str(file), "--study", str(folder / "study.toml"), "--authority", str(folder / "ca.pem"))
        yield CliRunner().invoke(veiltab, words).output
    yield plain(contents(evidence)["index.html"].decode())


def plain(html: str) -> str:
    """Return the text of a page, a line for each of its elements."""
    text = re.sub(r"(?s)<(style|script|svg).*?</\1>", "", html)
    return "\n".join(filter(None, (line.strip() for line in unescape(re.sub(r"<[^>]*>", "\n", text)).split("\n"))))


def refusals() -> Iterator[str]:
    for path in sorted(path for room in rooms() for path in (SOURCE / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=kind), args=[problem, *_], keywords=keywords) if kind.endswith("Error"):
                    remedies = [words(one.value) for one in keywords if one.arg == "remedy"]
                    yield f"{kind}: {'. '.join([words(problem), *remedies])}"


def words(node: ast.expr) -> str:
    """Return a text as the source has it, with {} for what is filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(words(part) for part in parts)
        case ast.IfExp(body=one, orelse=other):
            return f"{words(one)} | {words(other)}"
        case _:
            return "{}"


def texts(folder: Path) -> str:
    """Return every text, with # for what differs between runs."""
    report = plain(render(make_report()))
    parts = {
        "cards": cards(),
        "notices": notices(folder),
        "verifications, and the page for an auditor": verifications(folder),
        "report": [report],
        "page of a link": [plain(bytes(link_page().body).decode())],
        "refusals": sorted({one for one in refusals() if re.search("[a-z]", one.partition(": ")[2])}),
    }
    text = "\n".join(f"== {name}\n" + "\n".join(lines) + "\n" for name, lines in parts.items())
    return re.sub(r"\b[0-9a-f]{16,}\b|\d[\d.,:-]*", "#", text.replace(str(folder), "FOLDER"))


def test_the_texts_are_those_that_were_read(tmp_path: Path) -> None:
    assert texts(tmp_path) == GOLDEN.read_text("utf-8"), "run python -m tests.test_texts, and read what is new"


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        GOLDEN.write_text(texts(Path(made)), "utf-8")
    sys.stdout.write(json.dumps({"written": str(GOLDEN)}) + "\n")
