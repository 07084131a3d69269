from collections import Counter
from pathlib import Path

import pytest

from tests.common.collection.rounds import PLAIN, plain_round, round_with, study
from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError, NotFoundError
from veiltab.node.answers.values import BadRow, Fleet, fleet_from_distribution, fleet_from_file, read_tokens

TOKENS = [f"{number:032x}" for number in range(10)]
CANARY = "the-value-of-somebody"


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """Five tokens for everyone."""
    return written(tmp_path / "tokens.csv", "stratum,token", *(f"everyone,{token}" for token in TOKENS[:5]))


@pytest.fixture
def regional(tmp_path: Path) -> Path:
    """Three tokens for the north and two for the south."""
    lines = [f"{'north' if number < 3 else 'south'},{TOKENS[number]}" for number in (0, 3, 1, 2, 4)]
    return written(tmp_path / "regional.csv", "stratum,token", *lines)


def written(path: Path, *lines: str, end: str = "\n") -> Path:
    path.write_text(end.join(lines) + end, "utf-8", newline="")
    return path


def everybody(values: Path, tokens: Path) -> Fleet:
    return fleet_from_file(plain_round(), study(PLAIN), values, tokens)


def test_each_line_is_a_node_with_a_token(tmp_path: Path, tokens: Path) -> None:
    fleet = everybody(written(tmp_path / "v.csv", "value", "1", " 20", "7"), tokens)
    assert [(node.node, node.symbol, node.token.hex(), node.stratum) for node in fleet.nodes] == [
        (2, 0, TOKENS[0], "everyone"),
        (3, 19, TOKENS[1], "everyone"),
        (4, 6, TOKENS[2], "everyone"),
    ]
    assert fleet.bad_rows == ()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_files_of_spreadsheets_are_read(tmp_path: Path, tokens: Path, end: str) -> None:
    fleet = everybody(written(tmp_path / "v.csv", "\ufeffname,value", '"Doe, J.",3', "x,4", end=end), tokens)
    assert [node.symbol for node in fleet.nodes] == [2, 3]


def test_a_node_has_a_token_of_its_stratum(tmp_path: Path, regional: Path) -> None:
    values = written(tmp_path / "v.csv", "stratum,value", "south,1", "north,2", " north ,3", "south,4")
    fleet = fleet_from_file(round_with(), study(), values, regional)
    assert [(node.stratum, node.token.hex()) for node in fleet.nodes] == [
        ("south", TOKENS[3]),
        ("north", TOKENS[0]),
        ("north", TOKENS[1]),
        ("south", TOKENS[4]),
    ]


def test_bad_rows_are_named_by_line_and_never_repeated(tmp_path: Path, regional: Path) -> None:
    rows = ["north,1", f"north,{CANARY}", "north,", f"{CANARY},2", ",3", "south,21", "south,5"]
    fleet = fleet_from_file(round_with(), study(), written(tmp_path / "v.csv", "stratum,value", *rows), regional)
    assert [node.node for node in fleet.nodes] == [2, 8]
    assert fleet.bad_rows == (
        BadRow(line=3, problem="the value is outside the domain"),
        BadRow(line=4, problem="the value is outside the domain"),
        BadRow(line=5, problem="no such stratum in this round"),
        BadRow(line=6, problem="no such stratum in this round"),
        BadRow(line=7, problem="the value is outside the domain"),
    )
    assert CANARY not in repr(fleet)


def test_more_nodes_than_tokens_are_refused_before_anything_is_sent(tmp_path: Path, regional: Path) -> None:
    rows = ["south,1", "south,2", "north,3", "south,4", "north,5", "north,6", "north,7", "north,8"]
    with pytest.raises(InvalidInputError, match="1 of stratum south, 2 of stratum north have none") as refusal:
        fleet_from_file(round_with(), study(), written(tmp_path / "v.csv", "stratum,value", *rows), regional)
    assert refusal.value.where == str(regional)


def test_a_bad_row_keeps_its_token_so_that_the_others_keep_theirs(tmp_path: Path, tokens: Path) -> None:
    fleet = everybody(written(tmp_path / "v.csv", "value", "1", CANARY, "2"), tokens)
    assert [node.token.hex() for node in fleet.nodes] == [TOKENS[0], TOKENS[2]]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_blank_line_is_a_node_without_a_value(tmp_path: Path, tokens: Path, end: str) -> None:
    fleet = everybody(written(tmp_path / "v.csv", "value", "1", "", "2", '""', end=end), tokens)
    assert [(node.node, node.token.hex()) for node in fleet.nodes] == [(2, TOKENS[0]), (4, TOKENS[2])]
    assert fleet.bad_rows == tuple(
        BadRow(line=line, problem="the line is blank: a node's value is missing") for line in (3, 5)
    )


def test_tokens_are_read_with_their_round_and_past_blank_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "round,stratum,token", f"r,north,{TOKENS[0]}", "", f"r,north,{TOKENS[1]}")
    assert {name: [token.hex() for token in batch] for name, batch in read_tokens(path).items()} == {
        "north": TOKENS[:2]
    }


def test_a_fleet_is_known_by_its_files(tmp_path: Path, tokens: Path) -> None:
    one = written(tmp_path / "one.csv", "value", "1")
    other = written(tmp_path / "other.csv", "value", "2")
    more = written(tmp_path / "more.csv", "stratum,token", f"everyone,{TOKENS[9]}")
    digests = {everybody(*files).digest for files in ((one, tokens), (other, tokens), (one, more))}
    assert len(digests) == 3
    assert everybody(written(tmp_path / "copy.csv", "value", "1"), tokens).digest in digests


def test_a_token_is_for_one_node(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "stratum,token", f"north,{TOKENS[0]}", f"south,{TOKENS[0]}")
    with pytest.raises(InvalidInputError, match=r"t\.csv, line 3: this token stands in an earlier line too") as refusal:
        read_tokens(path)
    assert TOKENS[0] not in str(refusal.value)


@pytest.mark.parametrize("token", ["", "0" * 31, "g" * 32, CANARY])
def test_a_line_without_a_token_is_named(tmp_path: Path, token: str) -> None:
    path = written(tmp_path / "t.csv", "stratum,token", f"north,{TOKENS[0]}", f"north,{token}")
    with pytest.raises(InvalidInputError, match=r"t\.csv, line 3: the token is not 32 hexadecimal digits") as refusal:
        read_tokens(path)
    assert CANARY not in str(refusal.value)


def test_files_that_are_none_are_refused(tmp_path: Path, tokens: Path) -> None:
    for header in ("values", "", "1"):
        with pytest.raises(InvalidInputError, match=r"there is no column value. Begin it with: value\."):
            everybody(written(tmp_path / "v.csv", header, "1"), tokens)
    with pytest.raises(InvalidInputError, match=r"there is no column stratum. Begin it with: value,stratum\."):
        fleet_from_file(round_with(), study(), written(tmp_path / "v.csv", "value", "1"), tokens)
    with pytest.raises(InvalidInputError, match="there is no column token"):
        read_tokens(written(tmp_path / "t.csv", "stratum", "north"))
    with refuses(NotFoundError, where=f"{tmp_path}/none.csv"):
        everybody(tmp_path / "none.csv", tokens)
    (tmp_path / "latin.csv").write_bytes(b"value\n\xe9\n")
    for path in (tmp_path / "latin.csv", tmp_path, written(tmp_path / "long.csv", "value", "1" * 200_000)):
        with pytest.raises(InvalidInputError, match="this is not a readable CSV file in UTF-8"):
            everybody(path, tokens)


def test_a_distribution_is_spread_over_the_tokens_of_every_stratum(regional: Path) -> None:
    fleet = fleet_from_distribution(round_with(), "uniform:20", regional)
    assert Counter(node.stratum for node in fleet.nodes) == {"north": 3, "south": 2}
    assert sorted(node.token.hex() for node in fleet.nodes) == TOKENS[:5]
    assert sorted(node.node for node in fleet.nodes) == [1, 2, 3, 4, 5]
    assert fleet.digest != fleet_from_distribution(round_with(), "uniform:19", regional).digest


def test_a_distribution_has_its_shares(tmp_path: Path) -> None:
    tokens = written(tmp_path / "t.csv", "stratum,token", *(f"everyone,{number:032x}" for number in range(400)))
    fleet = fleet_from_distribution(plain_round(), "uniform:20", tokens)
    assert Counter(node.symbol for node in fleet.nodes) == dict.fromkeys(range(20), 20)


def test_the_values_of_a_distribution_are_categories_whatever_they_are_called(tokens: Path) -> None:
    fleet = fleet_from_distribution(plain_round(question="pet", size=3), "uniform:2", tokens)
    assert [node.symbol for node in fleet.nodes] == [0, 0, 0, 1, 1]


def test_a_distribution_lies_within_the_round(tokens: Path) -> None:
    with pytest.raises(InvalidInputError, match="does not cover"):
        fleet_from_distribution(plain_round(), "uniform:21", tokens)
    with pytest.raises(InvalidInputError, match="no such stratum"):
        fleet_from_distribution(round_with(), "uniform:20", tokens)
