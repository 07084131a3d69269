"""What the commands of a researcher print of a result, without a service behind them."""

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from tests.conftest import spec_with
from tests.researcher.made_status import made_status
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.privacy.planning.planning import FEW_ROWS
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.study.file import Study
from veiltab.deploy.cli import veiltab
from veiltab.researcher.commands.status_cli import Watcher
from veiltab.researcher.estimates.estimation import Estimate
from veiltab.researcher.estimates.uncertainty import ReleaseDesign


@pytest.mark.parametrize(("rows", "warned"), [(19, True), (400, False)])
def test_an_estimate_with_few_rows_in_a_cell_says_so(
    study: Study, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rows: int, *, warned: bool
) -> None:
    spec = spec_with()
    status = made_status(spec=release_of(spec), study_digest=spec.study_digest, granted=("sex", "salary"))
    mechanism = GammaDiagonal(cells=4, replacement=2**62)
    estimate = Estimate(
        domain=study.domain(("sex", "salary")),
        design=ReleaseDesign(population=1000, sample=rows, mechanism=mechanism),
        counts=np.array([rows - 3 * (rows // 4), *[rows // 4] * 3], np.int64),
        study_digest=study.digest,
    )
    release = SimpleNamespace(
        domain=lambda **_: estimate.domain,
        table=lambda *_, **__: estimate,
        status=lambda: status,
        respondents=lambda: "n counts all",
    )
    client = SimpleNamespace(release=lambda _name: release, study=study)
    monkeypatch.setattr("veiltab.researcher.client.client.Client", lambda *_, **__: nullcontext(client))
    words = ["estimate", "study.toml", "--identity", str(tmp_path), "--release", "wages"]
    shown = CliRunner().invoke(veiltab, ["researcher", *words], catch_exceptions=False)
    assert (FEW_ROWS in shown.stdout) == warned
    assert "\nn = 1,000.\n" in shown.stdout
    assert f"\nStudy: {study.title}. Its file: {study.digest}.\n" in shown.stdout
    plain = CliRunner().invoke(veiltab, ["researcher", *words, "--json"], catch_exceptions=False)
    assert json.loads(plain.stdout)["few_rows"] == warned
    assert json.loads(plain.stdout)["respondents"] in shown.stdout


def test_who_waits_reads_what_is_done_at_once_and_how_far_it_is_from_time_to_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [100.0]
    watcher = Watcher(lambda: now[0])
    for seconds, said in (
        (0, "drawing the sample: 0 %"),
        (5, "drawing the sample: 10 %, less than a minute left"),
        (5, "drawing the sample: 20 %, less than a minute left"),
        (1, "ordering the sample: 20 %, less than a minute left"),
        (1, "ordering the sample: 20 %, less than a minute left"),
        (1, "curator bob: has not drawn the sample yet"),
    ):
        now[0] += seconds
        watcher(made_status(state=ReleaseState.CHARGED, parties={"curator alice": (ReleaseState.CHARGED, said)}))
    lines = [line.split(maxsplit=1)[1] for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "charged; curator alice: drawing the sample: 0 %",
        "charged; curator alice: drawing the sample: 20 %, less than a minute left",
        "charged; curator alice: ordering the sample: 20 %, less than a minute left",
        "charged; curator bob: has not drawn the sample yet",
    ]
