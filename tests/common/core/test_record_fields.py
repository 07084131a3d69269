from veiltab.common.core.texts.record_fields import field_values, same_fields, shown_as
from veiltab.common.dataclass import dataclass


@dataclass(kw_only=True)
class Person:
    name: str
    born: int = shown_as("year")


def test_fields_are_shown_by_the_names_that_they_have_for_people() -> None:
    person = Person(name="Ana", born=1990)
    assert list(field_values(person).items()) == [("name", "Ana"), ("year", 1990)]
    assert same_fields(person, ["born"]) == {"born": 1990}
