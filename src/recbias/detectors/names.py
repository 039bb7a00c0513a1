"""Whether an item names more men than women, by the first names of its people (NGIM)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from recbias.core.arrays import BoolArray, FloatArray, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import Contradiction, NothingLeft, UserError
from recbias.core.labelled_texts import label_texts
from recbias.core.models.devices import Device
from recbias.core.protocols import ModelName
from recbias.core.stage_context import record_fact, warn
from recbias.detectors.people_counts import count_people, read_column
from recbias.language.groups.partial_progress import report_part
from recbias.language.masking.people import find_people
from recbias.language.masking.person_names import (
    FirstNames,
    PersonModel,
    get_dictionary_path,
)
from recbias.language.model_folders import list_model_files
from recbias.numerics.devices import find_device

TEXTS_PER_BLOCK = 256
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
        column = read_column(items, self.from_, "from")
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
        texts = read_column(items, self.from_, "from")
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
        for start in range(0, len(texts), TEXTS_PER_BLOCK):
            parts = [text.partition(_DIVIDER) for text in texts[start : start + TEXTS_PER_BLOCK]]
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
            return read_column(items, self.exclude, "exclude")
        return np.full(len(items.ids), None, dtype=object)

    def _count(self, people: Ids) -> FloatArray:
        near, in_texts = self.spelling == "near", self.persons != "none"
        return count_people(people, near=near, unique=self.unique, halves=in_texts)

    def _load_model(self) -> PersonModel:
        try:
            return PersonModel(self.persons, self.device)
        except UserError as error:
            error.where = "persons"
            raise
