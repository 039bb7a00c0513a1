"""Whether an item names more men than women, by the first names of its people (NGIM)."""

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
_TITLES = frozenset(
    (  # noqa: SIM905  one name a line would be 30 lines
        "captain capt col count countess dame dr father gen king lady lord major miss mr mrs ms "
        "prince princess prof queen rev sgt sir sister st"
    ).split()
)


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
        unique: Count a first name once per item: for names extracted from a text, where Betsy and
            Betsy Ray are one person. In a cast, two people called Lawrence are two.
        spelling: ``exact`` looks the first word up as it is written. ``near`` skips titles and
            initials (``F. Murray Abraham`` is Murray; ``J.D. Cannon`` is nobody), and tries an
            unknown name in other case, without accents, and by its first half (``Jean-Louis`` is
            Jean).
        missing: The label of an item in which nobody is identified, or whose cell is missing:
            ``zero`` as in the paper, or ``undefined``.

    Raises:
        UnknownColumn: The items have no such column, or it holds numbers.
        NothingLeft: Nobody is identified in any item.

    >>> from recbias.core.dataset.vocabulary import Vocabulary
    >>> cast = pd.DataFrame({"cast": ["Tom Hanks|Tim Allen|Annie Potts", "Mary Woronov|Topol"]})
    >>> items = Attributes(Vocabulary.of(["1", "2"]), cast)
    >>> labels = Names(from_="cast").label(items, np.random.default_rng(0))
    >>> {kind: values.round(2).tolist() for kind, values in labels.items()}
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
        """Return the labels and scores; ``rng`` is unused: the labels are deterministic."""
        column = self._read_column(items)
        rows, signs = self._identify(column)
        men = np.bincount(rows[signs > 0], minlength=len(column))
        people = np.bincount(rows, minlength=len(column))
        is_empty = people == 0
        if is_empty.all():
            message = f"in no item is a first name of {self.from_!r} known"
            remedy = "name a column of people, Tom Hanks|Annie Potts, or try spelling: near"
            raise NothingLeft(message, where="from", remedy=remedy)
        if is_empty.any():
            n_missing = int(column.isna().sum())
            outcome = "labelled 0" if self.missing == "zero" else "given no label"
            unknown = f"{int(is_empty.sum()) - n_missing:,} name nobody of known gender"
            counts = f"{n_missing:,} have no {self.from_!r} and {unknown}"
            warn(f"names: of {len(column):,} items, {counts}: {outcome}")
        labels = (2 * men > people).astype(np.float64)
        if self.missing == "undefined":
            labels[is_empty] = np.nan
        scores = np.divide(men, people, out=np.full(len(column), np.nan), where=~is_empty)
        return {"gender": labels, "gender_score": scores}

    def _read_column(self, items: Attributes) -> pd.Series[Any]:
        try:
            column = items.column(self.from_).reset_index(drop=True)
        except UnknownColumn as error:
            raise UnknownColumn(error.message, where="from", remedy=error.remedy) from error
        if column.dtype.kind == "f" and column.notna().any():
            message = f"column {self.from_!r} of the items holds numbers, not names of people"
            raise UnknownColumn(message, where="from")
        return column

    def _identify(self, column: pd.Series[Any]) -> tuple[AnyArray, AnyArray]:
        """Return the rows of the people of known gender, and 1 for a man, -1 for a woman."""
        cells = column.dropna().astype(str).str.split(SEPARATOR, regex=False).explode()
        person_codes, people = pd.factorize(cells)
        near = self.spelling == "near"
        first_names = np.array([first_name(person, near=near) for person in people], dtype=object)
        person_names, names = pd.factorize(first_names)
        name_signs = np.array([gender_of(name, near=near) for name in names], dtype=np.int8)
        rows, name_codes = cells.index.to_numpy(dtype=np.int64), person_names[person_codes]
        if self.unique:
            n_names = max(len(names), 1)
            rows, name_codes = np.divmod(np.unique(rows * n_names + name_codes), n_names)
        signs = name_signs[name_codes]
        return rows[signs != 0], signs[signs != 0]


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
