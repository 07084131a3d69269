"""The names of the persons who decide at a curator, as they write them.

A name is what a person says; nothing here proves it. See docs/evidence.md.
"""

import getpass
import unicodedata

from veiltab.common.core.texts.spelling import is_seen, mixes_scripts, same_person_key
from veiltab.common.errors import InvalidInputError

_LONGEST_NAME = 100
_LONGEST_REASON = 1000


def person_name(text: str) -> str:
    """Return a person's name as it is recorded: composed Unicode, single spaces.

    Raises:
        InvalidInputError: there is no letter or digit in it, it is too long, has characters that are not seen, or mixes
            scripts whose letters look alike.
    """
    name = _line(text)
    if len(name) > _LONGEST_NAME or not all(map(is_seen, name)) or not same_person_key(name):
        raise InvalidInputError(
            f"the person's name has no letters, more than {_LONGEST_NAME} characters, or some that are not printable",
            where="person",
            remedy='Say who decides, for example --person "Ana Diaz".',
        )
    if mixes_scripts(name):
        raise InvalidInputError(
            "the person's name mixes scripts",
            where="person",
            remedy="Letters of Latin, Cyrillic or Greek that look the same make another name; type it anew.",
        )
    return name


def named_person(person: str | None, persons: int = 1) -> str:
    """Return who decides: the person who is named, or who is logged in.

    Args:
        person: the name as it was given; None if none was.
        persons: so many different persons must approve; where they are several, nobody is meant by default.

    Raises:
        InvalidInputError: the name is empty, or is needed, or the operating system does not say who is logged in.
    """
    if person is not None:
        if not person.strip():
            raise InvalidInputError("the name is empty", where="--person", remedy="Say who decides.")
        return person
    if persons > 1:
        raise InvalidInputError(
            f"the policy asks for {persons} different persons",
            where="--person",
            remedy="Name the person with --person.",
        )
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise InvalidInputError("who decides is not known", where="--person", remedy="Say it by --person.") from None


def reason_text(text: str) -> str:
    """Return a reason as it is recorded: one line.

    Raises:
        InvalidInputError: it is too long, or it has characters that do not print.
    """
    reason = _line(text)
    if len(reason) > _LONGEST_REASON or not reason.isprintable():
        raise InvalidInputError(
            f"the reason is longer than {_LONGEST_REASON} characters, or has some that are not printable",
            where="reason",
        )
    return reason


def _line(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())
