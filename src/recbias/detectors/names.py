"""How many men and women each item names, by the first names of its people (NGIM)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from recbias.core.context import record_fact, warn
from recbias.core.dataset import SEPARATOR, Attributes, BoolArray, FloatArray, Ids
from recbias.core.errors import Contradiction, NothingLeft, UnknownColumn, at_setting
from recbias.core.plugins import Device, ModelName, label_texts
from recbias.kernels.devices import find_device
from recbias.language.groups import report_part
from recbias.language.masking import FirstNames, PersonModel, find_people, get_dictionary_path
from recbias.language.model_files import list_model_files

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


def read_cells(
    items: Attributes, name: str, setting: str = "from", *, noun: str = "texts"
) -> pd.Series[Any]:
    """Return a column of texts or of people.

    Raises:
        UnknownColumn: The items do not have the column, or it holds numbers.
    """
    with at_setting(setting):
        column = items.column(name)
    if column.dtype.kind == "f" and column.notna().any():
        message = f"column {name!r} of the items holds numbers, not {noun}"
        raise UnknownColumn(message, where=setting)
    return column


def _read_people(items: Attributes, name: str, setting: str = "from") -> Ids:
    """Return a column of people or of texts, None in missing cells: ``object[n_items]``."""
    column = read_cells(items, name, setting, noun="names of people")
    return np.array(column.astype(object).where(column.notna(), None), dtype=object)


def _count_people(people: Ids, *, near: bool, unique: bool, halves: bool) -> FloatArray:
    """Return the men, the people of known gender and all people of each item: ``float64[n, 3]``.

    Args:
        people: ``Tom Hanks|Annie Potts``; None for nobody, ``object[n]``.
        near: Whether first names are also looked up in other spellings.
        unique: Whether a first name counts once per item.
        halves: Whether an unknown double name has the gender of its first half.

    >>> people = np.array(["Tom Hanks|Annie Potts|Zopon", None], dtype=object)
    >>> _count_people(people, near=False, unique=False, halves=False).tolist()
    [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]
    """
    n_items = len(people)
    cells: pd.Series[Any] = pd.Series(people, dtype=object).dropna().astype(str)
    cells = cells.str.split(SEPARATOR, regex=False).explode()
    person_codes, persons = pd.factorize(cells)
    first_names = np.array([first_name(person, near=near) for person in persons], dtype=object)
    person_names, names = pd.factorize(first_names)
    signs = np.array([_find_gender(name, near=near, halves=halves) for name in names], np.int8)
    rows, codes = cells.index.to_numpy(dtype=np.int64), person_names[person_codes]
    n_mentioned = np.bincount(rows, minlength=n_items)
    if unique:
        n_names = max(len(names), 1)
        rows, codes = np.divmod(np.unique(rows * n_names + codes), n_names)
    men, women = (np.bincount(rows[signs[codes] == sign], minlength=n_items) for sign in (1, -1))
    return np.column_stack([men, men + women, n_mentioned]).astype(np.float64)


def _find_gender(name: str, *, near: bool, halves: bool) -> int:
    """Return the gender of a first name, or of its first half if it has a hyphen."""
    gender = gender_of(name, near=near)
    first, hyphen, _ = name.partition("-")
    return gender_of(first, near=near) if halves and hyphen and not gender else gender


_TEXTS_PER_BLOCK = 256
"""The texts whose people a model finds before their values are stored."""

_DIVIDER = "\x1e"  # between the people that are left out and the text


@dataclass(frozen=True, kw_only=True)
class Names:
    """Label items with more men than women among their people, by first names (NGIM).

        gender = 1 if men > women else 0,    gender_score = men / (men + women)

    The column holds people, ``Tom Hanks|Annie Potts``; ``Hanks, Tom`` is read too. Their first
    names are looked up in the lists of the package gender-guesser, over all countries. Mostly male
    or female is male or female; a name that is unknown or of both is dropped. As many men as women
    is 0. An item with nobody identified is 0 too, as in the paper, and counted in a warning; its
    score is undefined.

    With ``persons`` the column holds texts, and the people are those that the text mentions, each
    mention as it is written once. ``exclude`` leaves out the people of another column, such as the
    authors: mentions of several words of such a name, also inside a longer mention, its last word
    alone, and ``Smith, Mary``. ``Anna-Marie`` is one person, whose gender is that of ``Anna`` if
    the lists lack the whole name. The mean number of people of an item is the fact
    ``people_per_item`` of the manifest.

    Args:
        from_: The column of people, or of texts.
        persons: How people are found in texts. ``none``: the column holds people, not texts.
            ``names``: by first names of the package gender-guesser, of three letters or more, that
            are written with one capital (``Emily``), unless the texts write the word in lower case
            (``will``) more often than with a capital inside sentences; up to three words with a
            capital after it are surnames. Any other value is a token-classification model (its
            name on the Hugging Face hub, a folder, or an installed package): words that it labels
            PER or PERSON. What it finds is stored by the text: other seeds, filters and datasets
            with the same texts run it on nothing again.
        exclude: The column of people who are left out of texts; blank for none.
        device: Where a model for persons computes.
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
        Contradiction: ``exclude`` without ``persons``.
        MissingFile: The model for persons cannot be found or read.
        WrongType: The model for persons has no label for them.

    >>> import pandas as pd
    >>> from recbias.core.dataset import Vocabulary
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
    after_evaluation: ClassVar[frozenset[str]] = frozenset({"from", "exclude", "missing"})

    from_: str
    persons: Literal["none", "names"] | ModelName = "none"
    exclude: str = ""
    device: Device = "auto"
    unique: bool = False
    spelling: Literal["exact", "near"] = "exact"
    missing: Literal["zero", "undefined"] = "zero"

    def __post_init__(self) -> None:
        """Refuse people to leave out where none are found."""
        if self.exclude and self.persons == "none":
            message = "exclude applies to people in texts, and the column holds people"
            raise Contradiction(message, remedy="set persons: names, or remove exclude")

    def libraries_now(self) -> tuple[str, ...]:
        """Return the packages of a model for persons."""
        return ("torch", "transformers", "tokenizers") if self._has_model else ()

    def choose_device(self, default: Device) -> Mapping[str, str]:
        """Return the device of a model for persons; ``auto`` without one."""
        return {"device": find_device(self.device) if self._has_model else "auto"}

    def model_files(self) -> Sequence[Path]:
        """Return the dictionary of first names, or the files of a model for persons."""
        return list_model_files(self.persons) if self._has_model else (get_dictionary_path(),)

    @property
    def _has_model(self) -> bool:
        return self.persons not in {"none", "names"}

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the one kind, gender."""
        return ("gender",)

    def evaluates_texts(self) -> bool:
        """Return whether a model finds the people, in each text by itself."""
        return self._has_model

    def label(self, items: Attributes, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return the labels and scores; ``rng`` is unused: the labels are deterministic."""
        if self._has_model:
            return label_texts(self, None, items)
        column = _read_people(items, self.from_)
        people = column
        if self.persons == "names":
            texts = np.array([text or "" for text in column], dtype=object)
            people = find_people(texts, FirstNames(), self._read_excluded(items))
        counts = self._count(people)
        counts[[text is None for text in column]] = np.nan
        return self.label_values(counts)

    def texts(self, items: Attributes) -> Ids:
        """Return the people that are left out and the text of each item; None without a text.

        Raises:
            UnknownColumn: The items have no such column, or it holds numbers.
            NothingLeft: No item has a text.
        """
        texts = _read_people(items, self.from_)
        if all(text is None for text in texts):
            raise NothingLeft(f"column {self.from_!r} of the items is empty", where="from")
        rows = zip(self._read_excluded(items), texts, strict=True)
        joined = [
            None if text is None else f"{names or ''}{_DIVIDER}{text}" for names, text in rows
        ]
        return np.array(joined, dtype=object)

    def evaluate(self, texts: Sequence[str]) -> Iterator[FloatArray]:
        """Yield the men, the people of known gender and all people: ``float64[m, 3]``.

        Raises:
            MissingFile: The model cannot be found or read.
            WrongType: The model has no label for persons.
        """
        if not texts:
            return
        finder = self._load_model()
        for start in range(0, len(texts), _TEXTS_PER_BLOCK):
            parts = [text.partition(_DIVIDER) for text in texts[start : start + _TEXTS_PER_BLOCK]]
            block = np.array([text for _, _, text in parts], dtype=object)
            excluded = np.array([names for names, _, _ in parts], dtype=object)
            with report_part("finding people", start, start + len(parts), len(texts)):
                people = find_people(block, finder, excluded)
            yield self._count(people)

    def label_values(self, values: FloatArray) -> Mapping[str, FloatArray]:
        """Return the labels and scores; count the items in which nobody is identified.

        Raises:
            NothingLeft: Nobody is identified in any item.
        """
        n_items, n_missing = len(values), int(np.isnan(values[:, 0]).sum())
        men, people, mentioned = np.nan_to_num(values).T
        if self.persons != "none":
            record_fact("people_per_item", float(mentioned.sum()) / max(n_items, 1))
        is_empty = people == 0
        self._report_empty(is_empty, n_missing)
        labels = (2 * men > people).astype(np.float64)
        if self.missing == "undefined":
            labels[is_empty] = np.nan
        scores = np.divide(men, people, out=np.full(n_items, np.nan), where=~is_empty)
        return {"gender": labels, "gender_score": scores}

    def _report_empty(self, is_empty: BoolArray, n_missing: int) -> None:
        if is_empty.all():
            message = f"in no item is a first name of {self.from_!r} known"
            remedy = "name a column of people, Tom Hanks|Annie Potts, or try spelling: near"
            if self.persons == "none":
                remedy += "; in a column of texts, people are found with persons: names"
            raise NothingLeft(message, where="from", remedy=remedy)
        if is_empty.any():
            outcome = "labelled 0" if self.missing == "zero" else "given no label"
            unknown = f"{int(is_empty.sum()) - n_missing:,} name nobody of known gender"
            counts = f"{n_missing:,} have no {self.from_!r} and {unknown}"
            warn(f"names: of {is_empty.size:,} items, {counts}: {outcome}")

    def _read_excluded(self, items: Attributes) -> Ids:
        if self.exclude:
            return _read_people(items, self.exclude, "exclude")
        return np.full(len(items.ids), None, dtype=object)

    def _count(self, people: Ids) -> FloatArray:
        near, in_texts = self.spelling == "near", self.persons != "none"
        return _count_people(people, near=near, unique=self.unique, halves=in_texts)

    def _load_model(self) -> PersonModel:
        with at_setting("persons"):
            return PersonModel(self.persons, self.device)
