"""What counts as a command of a page, and how many of them stand before the tutorial's table."""

from pathlib import Path

from tests.tutorial.reading import Block, blocks, sections

TUTORIAL = Path(__file__).parents[2] / "docs/tutorial.md"
PAGE = """Type this:

```sh
first \\
  --with an option
cat > file <<'TOML'
a = 1

b = 2
TOML
last
```

and not this:

```console
$ shown \\
    --with an option
printed
```

```python
import this
print(1)
```
"""


def test_commands_of_several_lines_are_one() -> None:
    assert blocks(PAGE) == [
        Block(
            language="sh",
            commands=("first \\\n  --with an option", "cat > file <<'TOML'\na = 1\n\nb = 2\nTOML", "last"),
        ),
        Block(language="console", commands=("shown \\\n    --with an option",)),
        Block(language="python", commands=("import this\nprint(1)\n",)),
    ]


def test_the_tutorial_needs_fewer_than_fifteen_commands_to_a_table() -> None:
    parts = sections(TUTORIAL)
    needed = list(parts)[: list(parts).index("The result") + 1]
    typed = [command for title in needed for block in blocks(parts[title]) for command in block.commands]
    assert 10 < sum(command.startswith("veiltab ") for command in typed) < 15
