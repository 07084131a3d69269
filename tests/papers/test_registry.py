import pytest

from veiltab.common.errors import NotFoundError
from veiltab.papers.registry import load, names_of


def test_the_five_papers_have_names() -> None:
    assert names_of("all") == ("lin", "biswas", "hu", "must", "smith")
    assert names_of("hu") == ("hu",)


def test_an_unknown_name_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(NotFoundError) as caught:
        names_of("dwork")
    assert (caught.value.where, "lin, biswas, hu, must, smith" in caught.value.remedy) == ("NAME", True)


@pytest.mark.parametrize("name", ["lin", "smith"])
def test_an_experiment_is_what_its_name_says(name: str) -> None:
    found = load(name)
    assert found.name == name
    assert found.title
