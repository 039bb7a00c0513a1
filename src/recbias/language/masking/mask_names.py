"""Mask the names of items and persons in review texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le

from recbias.core.arrays import AnyArray, BoolArray, Ids
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.errors import MissingEvidence, NothingLeft, UnknownColumn, UserError
from recbias.core.models.devices import Device
from recbias.core.outputs.text_outputs import MASK
from recbias.core.protocols import ModelName
from recbias.core.stage_context import record_fact, report_progress
from recbias.language.masking.name_phrases import ItemNames, NameTree
from recbias.language.masking.person_names import FirstNames, PersonModel, get_dictionary_path
from recbias.language.masking.text_words import TextWords, divide_into_blocks, mark_ranges
from recbias.language.model_folders import list_model_files
from recbias.numerics.devices import find_device

_JOINING = re.compile(r"[ \t'’&/\-]*")
"""The separators between masked words that become one mask."""


@dataclass(frozen=True, kw_only=True)
class MaskNames:
    """Replace the names of items in review texts by ``[MASK]``, so that models cannot use them.

    Masked are, in upper or lower case, with or without accents and ``'s``, and always as whole
    words (``Amul`` does not match ``amulet``):

    - the full name: its words in order, whatever separates them, also without a final bracket. A
      name of common words only (``Bread``, ``Good Food``) matches if its first and last word have
      a capital. A name of one letter is never masked;
    - its distinctive words: those of three letters or more that occur in at most the share
      ``common`` of the reviews of items without the word in their name. ``Chipotle`` is masked,
      ``Grill`` is not.

    Adjacent masked words become one ``[MASK]``. Word frequencies are counted over all reviews,
    before the split, and all reviews are masked, test reviews too. With ``whose: all``, what is
    masked depends on the text alone, as with the named entity recognition of the paper. With
    ``own``, only the name of the reviewed item is masked, so the mask itself can reveal the item
    to a model.

    The manifest contains the counts ``review_words``, ``review_words_masked``, ``reviews_masked``
    and ``items_without_name``, and the fact ``masked_share`` (of the words).

    Args:
        column: The column of the items with their names.
        whose: Whether ``all`` names are masked in each review, or the reviewed item's ``own``.
        common: The largest share of other items' reviews that contain a distinctive word.
        persons: Whether names of persons are masked too. ``names``: the first names of the package
            gender-guesser, of three letters or more, that are written with one capital
            (``Emily``), unless the reviews write the word in lower case (``will``) more often than
            with a capital inside sentences; this includes places and cuisines that are also first
            names (``Austin``, ``Thai``). Any other value is a token-classification model (its name
            on the Hugging Face hub, a folder, or an installed package): words that it labels PER
            or PERSON.
        device: Where a model for persons computes.

    Raises:
        MissingEvidence: The dataset has no reviews or no items table.
        UnknownColumn: The items have no such column, or it contains numbers.
        NothingLeft: No item has a name, and persons are not masked.
        MissingFile: The model for persons cannot be found or read.
        WrongType: The model for persons has no label for them.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended Bias in Language Model-driven
        Conversational Recommendation", 2022, section 3.1; the rule for words is this project's.
    """

    column: str = "name"
    whose: Literal["all", "own"] = "all"
    common: Annotated[float, Ge(0), Le(1)] = 0.003
    persons: Literal["none", "names"] | ModelName = "none"
    device: Device = "auto"

    def libraries_now(self) -> tuple[str, ...]:
        """Return the packages of a model for persons."""
        return ("torch", "transformers") if self._has_model else ()

    def choose_device(self, default: Device) -> Mapping[str, str]:
        """Return the device of a model for persons; ``auto`` without one."""
        return {"device": find_device(self.device) if self._has_model else "auto"}

    @property
    def _has_model(self) -> bool:
        return self.persons not in {"none", "names"}

    def model_files(self) -> Sequence[Path]:
        """Return the dictionary of first names, or the files of a model for persons."""
        if self.persons == "none":
            return ()
        if self.persons == "names":
            return (get_dictionary_path(),)
        return list_model_files(self.persons)

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return the dataset with masked reviews; its interactions do not change."""
        reviews = dataset.reviews
        if reviews is None:
            remedy = "choose a dataset with review texts, and keep them"
            raise MissingEvidence("the dataset has no reviews to mask", remedy=remedy)
        names = self._encode_names(dataset)
        persons = self._load_person_finder()
        tree = self._build_tree(names, reviews, persons)
        texts, n_words, n_masked, n_texts = reviews.texts.copy(), 0, 0, 0
        for rows, block in _iterate_blocks(reviews.texts, "masking reviews"):
            masked, inner = self._find_names(block, names, tree, reviews.items[rows])
            if persons is not None:
                masked |= persons.find(block)
            changed = np.unique(block.text[masked])
            texts[rows[changed]] = _mask_texts(block, changed, masked, inner)
            n_words += masked.size
            n_masked += int(masked.sum())
            n_texts += changed.size
        record_fact("masked_share", n_masked / n_words if n_words else None)
        counts = {
            "items_without_name": sum(not spellings for spellings in names.spellings),
            "review_words": n_words,
            "review_words_masked": n_masked,
            "reviews_masked": n_texts,
        }
        return replace(
            dataset, reviews=replace(reviews, texts=texts), counts=dataset.counts | counts
        )

    def _encode_names(self, dataset: Dataset) -> ItemNames:
        if dataset.items is None:
            raise MissingEvidence("the dataset has no items table, and so no names")
        try:
            cells = dataset.items.column(self.column)
        except UnknownColumn as error:
            raise UnknownColumn(error.message, where="column", remedy=error.remedy) from error
        if cells.dtype.kind == "f" and cells.notna().any():
            message = f"column {self.column!r} contains numbers, not names"
            raise UnknownColumn(message, where="column")
        names = ItemNames.from_names(cells.where(cells.notna(), None))
        if self.persons == "none" and not names.vocabulary:
            message = f"no item has a name in the column {self.column!r}"
            raise NothingLeft(message, where="column", remedy="name the column of the names")
        return names

    def _load_person_finder(self) -> FirstNames | PersonModel | None:
        if self.persons == "none":
            return None
        if self.persons == "names":
            return FirstNames()
        try:
            return PersonModel(self.persons, self.device)
        except UserError as error:
            error.where = "persons"
            raise

    def _build_tree(
        self, names: ItemNames, reviews: Reviews, persons: FirstNames | PersonModel | None
    ) -> NameTree:
        """Count the words of all reviews and return the phrases to mask."""
        n_foreign = np.zeros(len(names.vocabulary), dtype=np.int64)
        for rows, block in _iterate_blocks(reviews.texts, "counting words of reviews"):
            n_foreign += names.count_foreign_texts(block, reviews.items[rows])
            if isinstance(persons, FirstNames):
                persons.learn(block)
        n_reviews = np.bincount(reviews.items, minlength=len(names.spellings))
        distinctive = names.find_distinctive(n_foreign, n_reviews, self.common)
        return NameTree.build(names, distinctive, per_item=self.whose == "own")

    def _find_names(
        self, block: TextWords, names: ItemNames, tree: NameTree, items: AnyArray
    ) -> tuple[BoolArray, BoolArray]:
        """Return which words belong to a name, and which of these are not its first word."""
        states = items.astype(np.int64) if self.whose == "own" else np.zeros_like(items, np.int64)
        lengths = tree.find_longest(block, names.encode(block), states)
        first = np.flatnonzero(lengths)
        end = first + lengths[first]
        return mark_ranges(lengths.size, first, end), mark_ranges(lengths.size, first + 1, end)


def _iterate_blocks(texts: Ids, task: str) -> Iterator[tuple[AnyArray, TextWords]]:
    for rows, block in divide_into_blocks(texts):
        yield rows, block
        report_progress(task, int(rows[-1]) + 1, len(texts))


def _mask_texts(block: TextWords, rows: AnyArray, masked: BoolArray, inner: BoolArray) -> Ids:
    """Return some of the texts with one mask for each run of masked words."""
    is_near = inner | block.match_separators(lambda text: _JOINING.fullmatch(text) is not None)
    joined = masked & np.roll(masked, 1) & is_near & ~block.is_first
    positions = block.positions
    removed = np.concatenate([positions[joined], positions[joined] - 1])
    new = np.array([MASK, ""], dtype=object)[np.repeat([0, 1], [masked.sum(), removed.size])]
    return block.replace_pieces(rows, np.concatenate([positions[masked], removed]), new)
