"""The names of the persons who decide at a curator, as they write them, and whether two of them are the same person.

A name is what a person says; nothing here proves it. See docs/evidence.md.
"""

import unicodedata

from veiltab.common.errors import InvalidInputError

_LONGEST_NAME = 100
_LONGEST_REASON = 1000


def person_name(text: str) -> str:
    """Return a person's name as it is recorded: composed Unicode, single spaces.

    Raises:
        InvalidInputError: there is no letter or digit in it, it is too long, or it has characters that do not print.
    """
    name = _line(text)
    if not _is_shown(name, _LONGEST_NAME) or not same_person_key(name):
        raise InvalidInputError(
            f"a person's name is a line of 1 to {_LONGEST_NAME} printable characters, with letters in it",
            where="person",
            remedy='Say who decides, for example --person "Ana Diaz".',
        )
    return name


def reason_text(text: str) -> str:
    """Return a reason as it is recorded: one line.

    Raises:
        InvalidInputError: it is too long, or it has characters that do not print.
    """
    reason = _line(text)
    if not _is_shown(reason, _LONGEST_REASON):
        raise InvalidInputError(f"a reason has at most {_LONGEST_REASON} printable characters", where="reason")
    return reason


def same_person_key(name: str) -> str:
    """Return what all spellings of a name share: its letters and digits, without case, accents, spaces or signs."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())
    return "".join(one for one in plain if one.isalnum())


def _line(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _is_shown(line: str, longest: int) -> bool:
    return len(line) <= longest and line.isprintable()
