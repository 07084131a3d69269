"""The wheel brings the import package `veiltab` and nothing else, and works beside a user's own modules."""

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import veiltab as veiltab_package
from tests.rooms import DEMO, in_wheel

ROOT = Path(__file__).parents[1]
WHEEL = "from hatchling.build import build_wheel; print(build_wheel({!r}))"
SDIST = "from hatchling.build import build_sdist; print(build_sdist({!r}))"


def build(code: str, source: Path, target: Path) -> Path:
    """Run a build in a source tree, and return what it made."""
    target.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code.format(str(target))], cwd=source, capture_output=True, text=True, check=True
    )
    return target / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(WHEEL, ROOT, tmp_path_factory.mktemp("package") / "wheel")


@pytest.fixture(scope="module")
def demo_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(WHEEL, ROOT / DEMO, tmp_path_factory.mktemp("package") / "demo")


@pytest.fixture
def demo(packages: Path, demo_wheel: Path) -> Iterator[None]:
    """The demonstrations, installed beside veiltab for one test."""
    with zipfile.ZipFile(demo_wheel) as archive:
        archive.extractall(packages)
    yield
    shutil.rmtree(packages / "veiltab" / DEMO)
    shutil.rmtree(next(packages.glob("veiltab_demo-*")))


@pytest.fixture(scope="module")
def packages(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site-packages of an empty environment into which the wheel is installed."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    command = [
        sys.executable,
        "-m",
        "pip",
        f"--python={folder / 'bin' / 'python'}",
        "install",
        "--quiet",
        "--no-compile",
    ]
    subprocess.run([*command, "--no-index", "--no-deps", str(wheel)], capture_output=True, check=True)
    return Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))


@pytest.fixture(scope="module")
def veiltab(packages: Path) -> Path:
    """The installed command.

    What the wheel requires is in this environment, and a path file leads there: installing it anew would take half a
    minute and a network. An editable veiltab is not seen that way, since it is a path file itself.
    """
    (packages / "requirements.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return packages.parents[2] / "bin" / "veiltab"


def test_the_wheel_holds_the_rooms_and_the_licence_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    version = wheel.name.split("-")[1]
    assert {name.split("/")[0] for name in names} == {"veiltab", f"veiltab-{version}.dist-info"}
    inside = {name.split("/")[1] for name in names if name.startswith("veiltab/") and name.count("/") > 1}
    assert inside == {*in_wheel(), "v1"}
    assert len(names) == len(set(names))
    assert f"veiltab-{version}.dist-info/licenses/LICENSE" in names
    assert "License-Expression: Apache-2.0" in metadata


def test_the_demonstrations_are_a_wheel_of_their_own_that_fits_beside_it(wheel: Path, demo_wheel: Path) -> None:
    with zipfile.ZipFile(demo_wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    version = wheel.name.split("-")[1]
    assert {name.split("/")[1] for name in names if name.startswith("veiltab/")} == {DEMO}
    assert {f"veiltab/{path.relative_to(ROOT)}" for path in (ROOT / DEMO).rglob("*.py")} <= set(names)
    assert {f"veiltab/play/studies/adult/{name}" for name in ("people.parquet", "ATTRIBUTION.md")} <= set(names)
    assert f"veiltab_demo-{version}.dist-info/licenses/LICENSE" in names
    assert f"Requires-Dist: veiltab[researcher]=={version}" in metadata
    assert f'demo = ["veiltab-demo=={version}"]' in (ROOT / "pyproject.toml").read_text("utf-8")


def test_an_image_is_built_from_every_room() -> None:
    context = (ROOT / "deploy" / "compose" / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert {f"!{room}" for room in in_wheel()} | {"!src", "!protos/veiltab", "!LICENSE"} <= set(context)


def test_an_environment_gets_one_package_of_it(packages: Path, wheel: Path) -> None:
    version = wheel.name.split("-")[1]
    names = {path.name for path in packages.iterdir()} - {"requirements.pth"}
    assert names == {"veiltab", f"veiltab-{version}.dist-info"}
    assert {path.name for path in (packages / "veiltab").iterdir()} == {*in_wheel(), "v1", "__init__.py", "__main__.py"}
    assert not [path for path in packages.rglob("*") if path.is_symlink()]


def test_a_wheel_from_the_source_distribution_is_the_same(wheel: Path, tmp_path: Path) -> None:
    sdist = build(SDIST, ROOT, tmp_path / "sdist")
    subprocess.run(["tar", "--extract", f"--file={sdist}"], cwd=tmp_path, check=True)
    (source,) = tmp_path.glob("veiltab-*")
    assert len(list(source.rglob("errors.py"))) == 1
    assert build(WHEEL, source, tmp_path / "wheel").read_bytes() == wheel.read_bytes()


def test_a_notebook_completes_what_the_package_gives() -> None:
    assert dir(veiltab_package) == sorted(veiltab_package.__all__)
    assert all(getattr(veiltab_package, name) for name in dir(veiltab_package))


@pytest.mark.long
@pytest.mark.usefixtures("demo")
def test_an_installed_veiltab_runs_beside_modules_of_the_same_names(
    packages: Path, veiltab: Path, tmp_path: Path
) -> None:
    (tmp_path / "node").mkdir()
    for name in ("common.py", "server.py", "deploy.py", "node/__init__.py"):
        (tmp_path / name).write_text("raise RuntimeError('a module of the user was imported')\n", "utf-8")
    code = "import veiltab as v; print(v.__file__, v.__version__, v.Client.__name__, v.Node.__name__)"
    file, version, client, node = run(tmp_path, veiltab.with_name("python"), "-c", code).split()
    assert Path(file) == packages / "veiltab" / "__init__.py"
    assert run(tmp_path, veiltab.with_name("python"), "-m", "veiltab", "--version").split()[-1] == version
    assert (client, node) == ("Client", "Node")
    shown = run(tmp_path, veiltab, "demo", "table", "--out", "demo")
    assert "Error of the joint distribution" in shown
    (check,) = re.findall(r"^Check it: veiltab (verify .*)", shown, re.MULTILINE)
    assert "Every line holds" in run(tmp_path, veiltab, *check.split())
    assert (tmp_path / "demo" / "report.html").exists()


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        (("demo",), "pip install 'veiltab[demo]'"),
        (("rehearse", "study.toml"), "pip install 'veiltab[demo]'"),
    ],
)
def test_what_is_not_in_wheel_says_where_it_is(
    veiltab: Path, tmp_path: Path, command: tuple[str, ...], remedy: str
) -> None:
    done = subprocess.run([veiltab, *command], cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert remedy in done.stderr


def test_an_installed_veiltab_computes_what_the_papers_do(veiltab: Path, tmp_path: Path) -> None:
    sizes = ("--population", "1000", "--sample", "400", "--epsilon", "1")
    assert json.loads(run(tmp_path, veiltab, "lab", "privacy", "amplify", *sizes, "--json"))["eta"] == 0.4
    replay = ("lab", "reproduce", "smith", "--quick", "--trials", "1000", "--jobs", "1", "--out", "replay")
    assert "Smith" in run(tmp_path, veiltab, *replay)


def run(folder: Path, *command: str | Path) -> str:
    """Run a command in a folder, without this process's environment, and return what it prints."""
    return subprocess.run(command, cwd=folder, env={}, capture_output=True, text=True, check=True).stdout
