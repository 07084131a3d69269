"""Dummy people of a study without a common number: the rule links all whom both curators hold, and nobody else."""

from pathlib import Path

import numpy as np

from tests.curator.made_rows import columns_in, ids_in
from tests.play.rehearsed_study import STUDY
from veiltab.common.linkage.row_keys import NormalRows, identity_columns, normal_rows, pass_keys
from veiltab.common.linkage.self_match import self_matches
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.curator.check.inspection import inspect_table
from veiltab.curator.table.table_reading import load_table
from veiltab.play.linkage.open_rule import first_candidates, resolve
from veiltab.play.studies.dummy_tables import dummy_tables
from veiltab.play.studies.registers import among_present

ALICE = """identity = { given = "first", family = "last", birth = ["d", "m", "y"], sex = "g", postcode = "zip" }
date_order = "dmy"
"""
BOB = 'identity = { given = "first", family = "last", birth = "born", sex = "g", postcode = "zip" }\n'
TABLE = '[identity]\nfields = ["given", "family", "birth", "sex", "postcode"]\n'


def linked_study() -> Study:
    text, done = STUDY.decode(), 0
    lines = []
    for line in text.splitlines():
        if line.startswith("id_columns"):
            lines.append((ALICE, BOB)[done])
            done += 1
        elif not line.startswith(("normalise", "forms")):
            lines.append(line)
    return study_from_bytes("\n".join([*lines, TABLE]).replace('hub = "alice"', 'hub = "bob"').encode(), "")


def test_all_whom_both_hold_are_linked(tmp_path: Path) -> None:
    study = linked_study()
    assert study.identity is not None
    made = dummy_tables(study, 700)
    tables, rows = {}, dict[str, NormalRows]()
    for name, path in made.write(tmp_path).items():
        assert inspect_table(path, study, name).ok
        tables[name] = load_table(path, study, name).respondents
        (batch,) = tables[name].batches()
        order = study.curator(name).date_order
        rows[name] = normal_rows(study.identity, order, identity_columns(batch.ids, study.identity))
    steps = tuple(one.step for one in self_matches(study.identity, rows["bob"]) if one.does_run)
    assert steps == study.identity.ladder
    passes = [(step.number, pass_keys(step, rows["bob"]), pass_keys(step, rows["alice"])) for step in steps]
    links = resolve(first_candidates(passes, len(rows["alice"])))
    truth = made.truth(["wage", "age"])
    assert len(links) == truth.sum()
    alice, bob = (columns_in(tables[name]) for name in ("alice", "bob"))
    domain = study.domain(["wage", "age"])
    own = {"alice": (alice, list(links.values())), "bob": (bob, list(links))}
    found = [own[study.owner_of(name)][0][name][own[study.owner_of(name)][1]].astype(np.int64) for name in domain.names]
    cells = np.ravel_multi_index(found, domain.shape)
    counts = np.bincount(cells, minlength=domain.cells)
    assert among_present(domain, counts).tolist() == truth.tolist()
    assert len(ids_in(tables["alice"])) > len(links)
