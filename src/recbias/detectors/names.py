"""Whether an item names more men than women, by the first names of its people (NGIM)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.dataset.attributes import SEPARATOR, Attributes
from recbias.core.errors import Contradiction, NothingLeft, UnknownColumn, UserError
from recbias.core.models.devices import Device
from recbias.core.protocols import ModelName
from recbias.core.stage_context import record_fact, warn
from recbias.detectors.first_names import first_name, gender_of
from recbias.language.masking.people import find_people
from recbias.language.masking.person_names import FirstNames, PersonModel, get_dictionary_path
from recbias.language.model_folders import list_model_files
from recbias.numerics.devices import find_device


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
            PER or PERSON.
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
        return ("torch", "transformers") if self._has_model else ()

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

    def label(self, items: Attributes, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return the labels and scores; ``rng`` is unused: the labels are deterministic."""
        column = self._read_people(items)
        rows, signs = self._identify(column)
        men = np.bincount(rows[signs > 0], minlength=len(column))
        people = np.bincount(rows, minlength=len(column))
        is_empty = people == 0
        if is_empty.all():
            message = f"in no item is a first name of {self.from_!r} known"
            remedy = "name a column of people, Tom Hanks|Annie Potts, or try spelling: near"
            if self.persons == "none":
                remedy += "; in a column of texts, people are found with persons: names"
            raise NothingLeft(message, where="from", remedy=remedy)
        if is_empty.any():
            n_missing = int(_read_column(items, self.from_, "from").isna().sum())
            outcome = "labelled 0" if self.missing == "zero" else "given no label"
            unknown = f"{int(is_empty.sum()) - n_missing:,} name nobody of known gender"
            counts = f"{n_missing:,} have no {self.from_!r} and {unknown}"
            warn(f"names: of {len(column):,} items, {counts}: {outcome}")
        labels = (2 * men > people).astype(np.float64)
        if self.missing == "undefined":
            labels[is_empty] = np.nan
        scores = np.divide(men, people, out=np.full(len(column), np.nan), where=~is_empty)
        return {"gender": labels, "gender_score": scores}

    def _read_people(self, items: Attributes) -> pd.Series[Any]:
        """Return the people of each item, as ``Tom Hanks|Annie Potts``."""
        column = _read_column(items, self.from_, "from")
        if self.persons == "none":
            return column
        excluded = np.full(len(column), None, dtype=object)
        if self.exclude:
            people_column = _read_column(items, self.exclude, "exclude").astype(object)
            excluded = people_column.where(people_column.notna(), None).to_numpy(dtype=object)
        texts = column.astype(object).where(column.notna(), "").to_numpy(dtype=object)
        people = pd.Series(find_people(texts, self._load_finder(), excluded), dtype=object)
        n_people = people.dropna().str.count(re.escape(SEPARATOR)).add(1).sum()
        record_fact("people_per_item", float(n_people) / max(len(people), 1))
        return people

    def _load_finder(self) -> FirstNames | PersonModel:
        if not self._has_model:
            return FirstNames()
        try:
            return PersonModel(self.persons, self.device)
        except UserError as error:
            error.where = "persons"
            raise

    def _identify(self, column: pd.Series[Any]) -> tuple[AnyArray, AnyArray]:
        """Return the rows of the people of known gender, and 1 for a man, -1 for a woman."""
        cells = column.dropna().astype(str).str.split(SEPARATOR, regex=False).explode()
        person_codes, people = pd.factorize(cells)
        near = self.spelling == "near"
        first_names = np.array([first_name(person, near=near) for person in people], dtype=object)
        person_names, names = pd.factorize(first_names)
        name_signs = np.array([self._find_gender(name) for name in names], dtype=np.int8)
        rows, name_codes = cells.index.to_numpy(dtype=np.int64), person_names[person_codes]
        if self.unique:
            n_names = max(len(names), 1)
            rows, name_codes = np.divmod(np.unique(rows * n_names + name_codes), n_names)
        signs = name_signs[name_codes]
        return rows[signs != 0], signs[signs != 0]

    def _find_gender(self, name: str) -> int:
        """Return the gender of a first name; in texts, of its first half if it has a hyphen."""
        near = self.spelling == "near"
        gender = gender_of(name, near=near)
        first, hyphen, _ = name.partition("-")
        is_double = bool(hyphen) and self.persons != "none"
        return gender_of(first, near=near) if is_double and not gender else gender


def _read_column(items: Attributes, name: str, setting: str) -> pd.Series[Any]:
    try:
        column = items.column(name).reset_index(drop=True)
    except UnknownColumn as error:
        raise UnknownColumn(error.message, where=setting, remedy=error.remedy) from error
    if column.dtype.kind == "f" and column.notna().any():
        message = f"column {name!r} of the items holds numbers, not names of people"
        raise UnknownColumn(message, where=setting)
    return column
