"""The gender of first names, and the first name of a person."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Any

_GENDERS = {"male": 1, "mostly_male": 1, "female": -1, "mostly_female": -1}
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]?")
_SUFFIXES = {"", "jr", "sr", "ii", "iii", "iv"}
_TITLES = frozenset(
    (  # noqa: SIM905  one name a line would be 30 lines
        "captain capt col count countess dame dr father gen king lady lord major miss mr mrs ms "
        "prince princess prof queen rev sgt sir sister st"
    ).split()
)


def first_name(person: str, *, near: bool = False) -> str:
    """Return the first name of a person, blank if there is none.

    Args:
        person: ``Tom Hanks`` or ``Hanks, Tom``.
        near: Whether to skip titles and initials before the surname.

    >>> first_name("Hanks, Tom"), first_name("F. Murray Abraham"), first_name("J.D. Cannon")
    ('Tom', 'F.', 'J.D.')
    >>> first_name("F. Murray Abraham", near=True), first_name("Dr. J.D. Cannon", near=True)
    ('Murray', '')
    """
    before_comma, _, after_comma = person.partition(",")
    is_suffix = after_comma.strip().rstrip(".").casefold() in _SUFFIXES
    given_names = [] if is_suffix else after_comma.split()
    words = given_names or before_comma.split()
    if not near:
        return words[0] if words else ""
    candidates = words if given_names or len(words) == 1 else words[:-1]
    return next((word for word in candidates if not _is_title_or_initial(word)), "")


def gender_of(name: str, *, near: bool = False) -> int:
    """Return 1 for a first name of men, -1 for one of women, 0 for one of both or unknown.

    Args:
        name: The name.
        near: Whether to try other spellings of an unknown name.

    >>> [gender_of(name) for name in ("Murray", "Jean-Louis", "Mía", "Li", "Zopon")]
    [1, 0, 0, 0, 0]
    >>> [gender_of(name, near=True) for name in ("MURRAY", "Jean-Louis", "Mía", "Li", "Zopon")]
    [1, 1, -1, 0, 0]
    """
    for spelling in _list_spellings(name) if near else (name,):
        gender = _load_detector().get_gender(spelling)
        if gender != "unknown":
            return _GENDERS.get(gender, 0)
    return 0


def _is_title_or_initial(word: str) -> bool:
    plain = word.rstrip(".").casefold()
    return plain in _TITLES or len(plain) == 1 or _INITIALS.fullmatch(word) is not None


def _list_spellings(name: str) -> Iterator[str]:
    """Yield the spellings under which a first name is looked up, in order."""
    cased = name.title() if name.isupper() or name.islower() else name
    for spelling in (cased, cased.partition("-")[0]):
        letters = unicodedata.normalize("NFD", spelling)
        yield spelling
        yield "".join(letter for letter in letters if not unicodedata.combining(letter))


@cache
def _load_detector() -> Any:
    from gender_guesser.detector import Detector

    return Detector()
