"""The recipes of CONTRIBUTING.md, followed in a copy of the tree: so many files, and it works."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "protos", "common", "curator", "researcher", "server", "node", "deploy", "play")


class Tree:
    """A copy of the product that a recipe changes; it remembers which files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.changed: set[str] = set()
        for name in FOLDERS:
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))

    def write(self, path: str, text: str) -> None:
        """Write a new file."""
        assert not (self.folder / path).exists()
        (self.folder / path).write_text(text)
        self.changed.add(path)

    def put(self, path: str, after: str, text: str) -> None:
        """Put text behind a part of a file that is there once."""
        before = (self.folder / path).read_text()
        assert before.count(after) == 1, f"{after!r} is {before.count(after)} times in {path}"
        (self.folder / path).write_text(before.replace(after, after + text))
        self.changed.add(path)

    def generate(self) -> None:
        """Generate the Python of the protocol, as `make proto` does."""
        files = [
            str(path.relative_to(self.folder / "protos")) for path in self.folder.glob("protos/veiltab/v1/*.proto")
        ]
        self._run("-m", "grpc_tools.protoc", "-I", "protos", "--python_out=protos", "--pyi_out=protos", *files)

    def check(self, code: str) -> None:
        """Run Python in the changed tree."""
        self._run("-c", code)

    def _run(self, *words: str) -> None:
        environment = os.environ | {"PYTHONPATH": str(self.folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


REQUEST = """
from decimal import Decimal
from veiltab.common.release.messages.release_messages import request_from_proto, request_to_proto
from veiltab.common.release.request import ReleaseRequest
asked = ReleaseRequest(
    release_id="0" * 32, researcher="rosa", attributes=("sex",), epsilon=Decimal(1), deadline=1, {changes}
)
assert request_from_proto(request_to_proto(asked), "rosa") == ReleaseRequest.from_json(asked.to_json()) == asked
"""


def test_a_field_of_a_request_is_five_files(tree: Tree) -> None:
    tree.put("common/release/request.py", "    canaries: int | None = None\n", '    grant: str = ""\n')
    tree.put(
        "protos/veiltab/v1/release.proto",
        "  // So many of the tables may be released a second time, chosen after the first results; 0 without tables.\n"
        "  uint32 repeats = 18;\n",
        "  // Number of the grant that pays for it; may be empty.\n  string grant = 99;\n",
    )
    messages = "common/release/messages/release_messages.py"
    tree.put(messages, '        "repeats",\n', '        "grant",\n')
    tree.put(messages, 'if message.HasField("canaries") else None,\n', "        grant=message.grant,\n")
    client = "researcher/client/client.py"
    tree.put(client, "        canaries: int | None = None,\n", '        grant: str = "",\n')
    tree.put(client, "canaries=self.study.canaries if canaries is None else canaries,\n", "            grant=grant,\n")
    option = '@click.option("--purpose", default="", help="Purpose, for the people who decide.")\n'
    tree.put("researcher/commands/asking_cli.py", option, option.replace("purpose", "grant"))
    tree.generate()
    tree.check(REQUEST.format(changes='grant="A-7"'))
    tree.check(
        "from veiltab.researcher.commands.asking_cli import request\n"
        "assert 'grant' in {one.name for one in request.params}\n"
    )
    assert len(tree.changed) == 5


def test_a_study_key_is_one_place(tree: Tree) -> None:
    tree.put(
        "common/study/file.py",
        'optional_key(100, "fewest rows of the hub in a release")\n',
        '    minutes: int = optional_key(7, "a new key")\n',
    )
    tree.check(
        "from veiltab.common.study.drafts.template import study_template\n"
        "from veiltab.common.study.file import study_from_bytes\n"
        "from veiltab.common.study.problems import study_problems\n"
        "text = study_template('wages')\n"
        "assert '# minutes (whole number; without it: 7): a new key' in text\n"
        "assert study_from_bytes(text.encode(), '').minutes == 7\n"
        "text = text.replace('[study]\\n', '[study]\\nminutes = 9\\n')\n"
        "assert study_from_bytes(text.encode(), '').minutes == 9\n"
        "assert 'a new key' in str(study_problems(text.replace('minutes', 'minute').encode())[0])\n"
    )
    assert len(tree.changed) == 1


def test_a_table_format_is_a_file_and_a_line(tree: Tree) -> None:
    tree.write(
        "curator/formats/files/ipc_file.py",
        "from veiltab.curator.formats.files.arrow_file import ArrowFile\n\n\n"
        "class IpcFile(ArrowFile):\n"
        '    """An Arrow file by another name."""\n',
    )
    tree.put(
        "curator/formats/opening.py",
        '    (".arrow", ".feather"): "files.arrow_file:ArrowFile",\n',
        '    (".ipc",): "files.ipc_file:IpcFile",\n',
    )
    tree.check(
        "from pathlib import Path\n"
        "import pyarrow as pa\n"
        "from veiltab.curator.formats.opening import open_table\n"
        'table = pa.table({"id": ["1", "2"], "sex": ["f", "m"]})\n'
        'with pa.ipc.new_file("people.ipc", table.schema) as file:\n'
        "    file.write(table)\n"
        'assert [one.name for one in open_table(Path("people.ipc")).columns] == ["id", "sex"]\n'
    )
    assert len(tree.changed) == 2
