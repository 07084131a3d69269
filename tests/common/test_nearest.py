import pytest

from veiltab.common.core.texts.nearest import known_names, nearest


@pytest.mark.parametrize(
    ("known", "name", "said"),
    [
        (["sex", "age"], "sexx", "Did you mean 'sex'? "),
        (["sex", "sax"], "SEX", "Did you mean 'sex'? "),
        (["age", "sex"], "religion", ""),
        ([], "sex", ""),
    ],
)
def test_the_nearest_known_name_is_proposed(known: list[str], name: str, said: str) -> None:
    assert nearest(known, name) == said


def test_all_known_names_follow_the_nearest() -> None:
    assert known_names("Attributes", iter(["sex", "age"]), "agee") == "Did you mean 'age'? Attributes: sex, age."
    assert known_names("Attributes", []) == "Attributes: none."
