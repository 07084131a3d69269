"""Which characters of a text are seen, and which names of persons look the same."""

import re
import unicodedata
from bisect import bisect_right

_IGNORABLE = (
    *((0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
"""First and last characters of Unicode's Default_Ignorable_Code_Point: nothing is drawn for them, letters or not."""

_FIRST = tuple(first for first, _ in _IGNORABLE)
_ALIKE = frozenset({"LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "COPTIC", "CHEROKEE", "LISU"})
"""Scripts, as the names of their letters begin, with letters that look like those of another of them."""

PLAIN_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"}
    | dict(zip("øđðł\u0131", "oddli", strict=True))
    | dict(zip("\u0671\u0649\u06cc\u06a9\u0629", "\u0627\u064a\u064a\u0643\u0647", strict=True))
)
"""Letters that no decomposition turns into ASCII, as they are usually written there, and Arabic ones as other keyboards
write them: yeh, kaf, and teh marbuta as heh."""

_LOOKS = PLAIN_LETTERS | str.maketrans("авекмнорстухіјѕαβεζηικμνορτυχ", "abekmhopctyxijsabezhikmnoptyx")
"""The same, and Cyrillic and Greek letters of which the small one or the capital looks like a Latin letter."""

_FORM_OF_LATIN = re.compile(r"LATIN (?:SMALL |LETTER |CAPITAL |DOTLESS |SCRIPT )*([A-Z])(?:LPHA)?(?: WITH .*)?")
"""Names of letters such as LATIN SMALL LETTER Z WITH RETROFLEX HOOK, LATIN LETTER SMALL CAPITAL R and ALPHA."""


def is_seen(character: str) -> bool:
    """Whether a character, or its space, is seen where it stands."""
    return character.isprintable() and not _is_ignorable(character)


def escaped(text: str) -> str:
    """Return a text with an escape for each character that is not seen, or that could begin a line."""
    return "".join(one if is_seen(one) else ascii(one)[1:-1] for one in text)


def shown(text: str) -> str:
    """Return a text as `escaped`, and with escapes in words of two scripts, which look like words of one."""
    return re.sub(r"\w+", lambda word: ascii(word[0])[1:-1] if mixes_scripts(word[0]) else word[0], escaped(text))


def quoted(text: str) -> str:
    """Return a text in quotes, as `shown`."""
    return f"'{shown(text)}'"


def mixes_scripts(name: str) -> bool:
    """Whether a name has letters of two scripts whose letters look alike, such as Latin and Cyrillic."""
    words = (unicodedata.name(one, "").partition(" ")[0] for one in unicodedata.normalize("NFKD", name))
    return len(_ALIKE.intersection(words)) > 1


def same_person_key(name: str) -> str:
    """Return what all spellings of a name share: its letters and digits, without case, accents, spaces or signs."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold()).translate(_LOOKS)
    return "".join(_looks_like(one) for one in plain if one.isalnum() and not _is_ignorable(one))


def _looks_like(letter: str) -> str:
    """Return the letter of ASCII of which another one of Latin is a form, as skeletons of Unicode TR 39 have it."""
    form = None if letter.isascii() else _FORM_OF_LATIN.fullmatch(unicodedata.name(letter, ""))
    return form[1].lower() if form else letter


def _is_ignorable(character: str) -> bool:
    place = bisect_right(_FIRST, ord(character)) - 1
    return place >= 0 and ord(character) <= _IGNORABLE[place][1]
