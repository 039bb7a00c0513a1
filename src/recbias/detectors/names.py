"""Whether more men than women are named: NGIM, by the first names of an item's people."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.dataset.attributes import SEPARATOR, Attributes
from recbias.core.errors import NothingLeft, UnknownColumn
from recbias.core.stage_context import warn

_GENDERS = {"male": 1, "mostly_male": 1, "female": -1, "mostly_female": -1}
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]?")
_SUFFIXES = {"", "jr", "sr", "ii", "iii", "iv"}
_TITLES = {
    *(
        "captain",
        "capt",
        "col",
        "count",
        "countess",
        "dame",
        "dr",
        "father",
        "gen",
        "king",
        "lady",
    ),
    *("lord", "major", "miss", "mr", "mrs", "ms", "prince", "princess", "prof", "queen", "rev"),
    *("sgt", "sir", "sister", "st"),
}


@dataclass(frozen=True, kw_only=True)
class Names:
    """Label items with more men than women among their people, by first names (NGIM).

        gender = 1 if men > women else 0,    gender_score = men / (men + women)

    The column holds people, ``Tom Hanks|Annie Potts``; ``Hanks, Tom`` is read too. Their first
    names are looked up in the lists of the package gender-guesser, over all countries. Mostly male
    or female is male or female; a name that is unknown or of both is dropped. As many men as women
    is 0. An item with nobody identified is 0 too, as in the paper, and counted in a warning; its
    score is undefined.

    Args:
        from_: The column of people.
        unique: Count a first name once per item: for names found in a text, where Betsy and Betsy
            Ray are one person. In a cast, two people called Lawrence are two.
        spelling: ``exact`` looks the first word up as it is written. ``near`` passes over titles
            and initials (``F. Murray Abraham`` is Murray; ``J.D. Cannon`` is nobody), and tries a
            name that is unknown in other case, without accents, and by its first half
            (``Jean-Louis`` is Jean).
        missing: What an item is labelled in which nobody is identified, or whose cell is missing:
            ``zero`` as in the paper, or ``undefined``.

    Raises:
        UnknownColumn: The items have no such column, or it holds numbers.
        NothingLeft: Nobody is identified in any item.

    >>> from recbias.core.dataset.vocabulary import Vocabulary
    >>> cast = pd.DataFrame({"cast": ["Tom Hanks|Tim Allen|Annie Potts", "Mary Woronov|Topol"]})
    >>> items = Attributes(Vocabulary.of(["1", "2"]), cast)
    >>> found = Names(from_="cast").label(items, np.random.default_rng(0))
    >>> {kind: values.round(2).tolist() for kind, values in found.items()}
    {'gender': [1.0, 0.0], 'gender_score': [0.67, 0.0]}

    Source:
        Al Nahadi, "Exploring children's exposure to stereotypes via recommender systems", MSc
        thesis, TU Delft 2023, section 3.3.1; the names of the package gender-guesser.
    """

    libraries: ClassVar[tuple[str, ...]] = ("gender-guesser",)

    from_: str
    unique: bool = False
    spelling: Literal["exact", "near"] = "exact"
    missing: Literal["zero", "undefined"] = "zero"

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the one kind, gender."""
        return ("gender",)

    def label(self, items: Attributes, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return the labels and their grades; ``rng`` is unused, there is no chance in it."""
        column = self._column(items)
        rows, signs = self._identified(column)
        men = np.bincount(rows[signs > 0], minlength=len(column))
        known = np.bincount(rows, minlength=len(column))
        nobody = known == 0
        if nobody.all():
            found = f"in no item is a first name of {self.from_!r} known"
            remedy = "name a column of people, Tom Hanks|Annie Potts, or try spelling: near"
            raise NothingLeft(found, where="from", remedy=remedy)
        self._say(column, nobody)
        labels = (2 * men > known).astype(np.float64)
        if self.missing == "undefined":
            labels[nobody] = np.nan
        score = np.divide(men, known, out=np.full(len(column), np.nan), where=~nobody)
        return {"gender": labels, "gender_score": score}

    def _column(self, items: Attributes) -> pd.Series[Any]:
        try:
            column = items.column(self.from_).reset_index(drop=True)
        except UnknownColumn as error:
            raise UnknownColumn(error.message, where="from", remedy=error.remedy) from error
        if column.dtype.kind == "f" and column.notna().any():
            found = f"column {self.from_!r} of the items holds numbers, not names of people"
            raise UnknownColumn(found, where="from")
        return column

    def _identified(self, column: pd.Series[Any]) -> tuple[AnyArray, AnyArray]:
        """Return the rows of the people whose gender is known, and 1 for a man, -1 for a woman."""
        cells = column.dropna().astype(str).str.split(SEPARATOR, regex=False).explode()
        codes, people = pd.factorize(cells)
        near = self.spelling == "near"
        words = np.array([first_name(each, near=near) for each in people], dtype=object)
        of_people, names = pd.factorize(words)
        signs = np.array([gender_of(each, near=near) for each in names], dtype=np.int8)
        rows, of_rows = cells.index.to_numpy(dtype=np.int64), of_people[codes]
        if self.unique:
            size = max(len(names), 1)
            rows, of_rows = np.divmod(np.unique(rows * size + of_rows), size)
        known = signs[of_rows] != 0
        return rows[known], signs[of_rows][known]

    def _say(self, column: pd.Series[Any], nobody: AnyArray) -> None:
        empty = int(column.isna().sum())
        if nobody.any():
            outcome = "labelled 0" if self.missing == "zero" else "left without a label"
            others = f"{int(nobody.sum()) - empty:,} name nobody whose gender is known"
            total = f"of {len(column):,} items, {empty:,} have no {self.from_!r} and {others}"
            warn(f"names: {total}: {outcome}")


def first_name(person: str, *, near: bool = False) -> str:
    """Return the first name of a person, blank where there is none.

    Args:
        person: ``Tom Hanks`` or ``Hanks, Tom``.
        near: Pass over titles and initials; who has nothing else before the surname is nobody.

    >>> first_name("Hanks, Tom"), first_name("F. Murray Abraham"), first_name("J.D. Cannon")
    ('Tom', 'F.', 'J.D.')
    >>> first_name("F. Murray Abraham", near=True), first_name("Dr. J.D. Cannon", near=True)
    ('Murray', '')
    """
    last, _, first = person.partition(",")
    behind = first.split() if first.strip().rstrip(".").casefold() not in _SUFFIXES else []
    words = behind or last.split()
    if not near:
        return words[0] if words else ""
    before = words if behind or len(words) == 1 else words[:-1]
    return next((each for each in before if not _is_passed_over(each)), "")


def gender_of(name: str, *, near: bool = False) -> int:
    """Return 1 for a first name of men, -1 for one of women, 0 for one of both or unknown.

    Args:
        name: The name.
        near: Try an unknown name in other spellings too.

    >>> [gender_of(each) for each in ("Murray", "Jean-Louis", "Mía", "Li", "Zopon")]
    [1, 0, 0, 0, 0]
    >>> [gender_of(each, near=True) for each in ("MURRAY", "Jean-Louis", "Mía", "Li", "Zopon")]
    [1, 1, -1, 0, 0]
    """
    for form in _spellings(name) if near else (name,):
        gender = _known_names().get_gender(form)
        if gender != "unknown":
            return _GENDERS.get(gender, 0)
    return 0


def _is_passed_over(word: str) -> bool:
    plain = word.rstrip(".").casefold()
    return plain in _TITLES or len(plain) == 1 or _INITIALS.fullmatch(word) is not None


def _spellings(name: str) -> Iterator[str]:
    """Yield the spellings under which a first name is looked up, in order."""
    written = name.title() if name.isupper() or name.islower() else name
    for each in (written, written.partition("-")[0]):
        letters = unicodedata.normalize("NFD", each)
        yield each
        yield "".join(letter for letter in letters if not unicodedata.combining(letter))


@cache
def _known_names() -> Any:
    from gender_guesser.detector import Detector

    return Detector()
