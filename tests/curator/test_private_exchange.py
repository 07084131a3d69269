from pathlib import Path

import pytest

from tests.curator.circle import align, circle

PEOPLE = [f"person {n}" + "x" * (n % 50) for n in range(400)]


@pytest.mark.parametrize(
    "tables",
    [
        [PEOPLE[:300], PEOPLE[:99:-1]],
        [PEOPLE[:300], PEOPLE[:99:-1], [*PEOPLE[50:250], "somebody"]],
        [PEOPLE[:30], PEOPLE[:9:-1], PEOPLE[5:25], PEOPLE[::2]],
    ],
    ids=["two", "three", "four"],
)
def test_all_find_exactly_what_all_share(tmp_path: Path, tables: list[list[str]]) -> None:
    with circle(tmp_path, tables) as curators:
        align(*curators)
        wanted = set.intersection(*map(set, tables))
        for curator in curators:
            assert curator.common() == wanted
        assert len({curator.tokens_file() for curator in curators}) == 1
        assert len({curator.alignment.result() for curator in curators}) == 1
