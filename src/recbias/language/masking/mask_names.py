"""Take names out of reviews: of items, and of persons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le

from recbias.core.arrays import AnyArray, BoolArray, Ids
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.errors import MissingEvidence, NothingLeft, UnknownColumn, UserError
from recbias.core.outputs.sentences import MASK
from recbias.core.protocols import ModelName
from recbias.core.stage_context import record_fact, report_progress
from recbias.language.backends import files_of
from recbias.language.masking.name_phrases import ItemNames, NameTree
from recbias.language.masking.person_names import FirstNames, PersonFinder, PersonModel, dictionary
from recbias.language.masking.text_words import TextWords, blocks

_JOINS = re.compile(r"[ \t'’&/\-]*")
"""What may stand between masked words that become one mask."""


@dataclass(frozen=True, kw_only=True)
class MaskNames:
    """Replace the names of items in review texts by ``[MASK]``, so that no model can read them.

    What is replaced, in large or small letters, with or without accents and ``'s``, and always by
    whole words (``Amul`` is not found in ``amulet``):

    - the name in full, its words in order whatever signs stand between them, also without what
      stands in brackets behind it. A name made of common words only (``Bread``, ``Good Food``)
      counts where its first and last word have a capital; a name of one letter is left alone;
    - its distinctive words: those of three letters or more that occur in at most the share
      ``common`` of the reviews of items that are not named so. ``Chipotle`` goes, ``Grill`` stays.

    Masked words side by side become one ``[MASK]``. How common a word is, is counted over all
    reviews, before they are split. All reviews are masked, those held out too; with ``whose: all``
    what goes depends on the text alone, as with the paper's recogniser of names, while ``own``
    takes from each review the name of the item that it is of, so that what is missing can itself
    tell a model which item that is.

    The counts ``review_words``, ``review_words_masked``, ``reviews_masked`` and
    ``items_without_name`` and the fact ``masked_share`` of the words are in the manifest.

    Args:
        column: The column of the items that holds their names.
        whose: Whether ``all`` names are taken out of each review, or its item's ``own``.
        common: The largest share of other items' reviews that hold a distinctive word.
        persons: Whether names of persons go too. ``names``: the first names, of three letters or
            more, of the package gender-guesser where they are written as ``Emily``, unless the
            reviews write the word in small letters (``will``) more often than so within a
            sentence; a place or cuisine that is called like a person (``Austin``, ``Thai``) goes
            too. Any other value is a token-classification model, by its name on the Hugging Face
            hub, its folder, or an installed package: what it labels PER or PERSON goes.

    Raises:
        MissingEvidence: The dataset has no reviews.
        UnknownColumn: The items have no such column, or it holds numbers.
        NothingLeft: No item has a name, and persons are not asked for.
        MissingFile: The model for persons is not there.
        WrongType: It does not mark persons.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended Bias in Language Model-driven
        Conversational Recommendation", 2022, section 3.1; the rule for words is this project's.
    """

    column: str = "name"
    whose: Literal["all", "own"] = "all"
    common: Annotated[float, Ge(0), Le(1)] = 0.003
    persons: Literal["none", "names"] | ModelName = "none"

    def model_files(self) -> Sequence[Path]:
        """Return the dictionary of first names, or the files of a model for persons."""
        if self.persons == "none":
            return ()
        return (dictionary(),) if self.persons == "names" else files_of(self.persons)

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return the dataset with masked reviews; interactions stay as they are."""
        reviews = dataset.reviews
        if reviews is None:
            remedy = "choose a dataset with review texts, and keep them"
            raise MissingEvidence("the dataset has no reviews to mask", remedy=remedy)
        names = self._names(dataset)
        persons = self._persons()
        tree = self._tree(names, reviews, persons)
        texts, n_words, n_masked, n_texts = reviews.texts.copy(), 0, 0, 0
        for rows, block in _reported(reviews.texts, "reviews masked"):
            masked, inner = self._found(block, names, tree, reviews.items[rows])
            if persons is not None:
                masked |= persons.find(block)
            changed = np.unique(block.text[masked])
            texts[rows[changed]] = _masked(block, changed, masked, inner)
            n_words += masked.size
            n_masked += int(masked.sum())
            n_texts += changed.size
        record_fact("masked_share", n_masked / n_words if n_words else None)
        counts = {
            "items_without_name": sum(not each for each in names.spelled),
            "review_words": n_words,
            "review_words_masked": n_masked,
            "reviews_masked": n_texts,
        }
        return replace(
            dataset, reviews=replace(reviews, texts=texts), counts=dataset.counts | counts
        )

    def _names(self, dataset: Dataset) -> ItemNames:
        if dataset.items is None:
            raise MissingEvidence("the dataset has no items table, and so no names")
        try:
            cells = dataset.items.column(self.column)
        except UnknownColumn as error:
            raise UnknownColumn(error.message, where="column", remedy=error.remedy) from error
        if cells.dtype.kind == "f" and cells.notna().any():
            raise UnknownColumn(f"column {self.column!r} holds numbers, no names", where="column")
        names = ItemNames.of(cells.where(cells.notna(), None))
        if self.persons == "none" and not names.vocabulary:
            found = f"no item has a name in the column {self.column!r}"
            raise NothingLeft(found, where="column", remedy="name the column of the names")
        return names

    def _persons(self) -> PersonFinder | None:
        if self.persons == "none":
            return None
        if self.persons == "names":
            return FirstNames()
        try:
            return PersonModel(self.persons)
        except UserError as error:
            error.where = "persons"
            raise

    def _tree(self, names: ItemNames, reviews: Reviews, persons: PersonFinder | None) -> NameTree:
        """Return what is looked for, after a look at all reviews."""
        strangers = np.zeros(len(names.vocabulary), dtype=np.int64)
        for rows, block in _reported(reviews.texts, "reviews looked through for common words"):
            strangers += names.held_by_strangers(block, reviews.items[rows])
            if persons is not None:
                persons.look(block)
        n_reviews = np.bincount(reviews.items, minlength=len(names.spelled))
        rare = names.rare(strangers, n_reviews, self.common)
        return NameTree.of(names, rare, own=self.whose == "own")

    def _found(
        self, block: TextWords, names: ItemNames, tree: NameTree, items: AnyArray
    ) -> tuple[BoolArray, BoolArray]:
        """Return which words are of a name, and which of these continue one."""
        states = items.astype(np.int64) if self.whose == "own" else np.zeros_like(items, np.int64)
        lengths = tree.find(block, names.codes(block), states)
        begin = np.flatnonzero(lengths)
        return (
            _covered(lengths.size, begin, begin + lengths[begin]),
            _covered(lengths.size, begin + 1, begin + lengths[begin]),
        )


def _reported(texts: Ids, what: str) -> Iterator[tuple[AnyArray, TextWords]]:
    for rows, block in blocks(texts):
        yield rows, block
        report_progress(what, int(rows[-1]) + 1, len(texts))


def _covered(n: int, start: AnyArray, end: AnyArray) -> BoolArray:
    """Return which of ``n`` places are in one of the ranges from ``start`` to before ``end``."""
    change = np.zeros(n + 1, dtype=np.int64)
    np.add.at(change, start, 1)
    np.add.at(change, end, -1)
    return np.asarray(np.cumsum(change)[:-1] > 0)


def _masked(block: TextWords, rows: AnyArray, masked: BoolArray, inner: BoolArray) -> Ids:
    """Return some texts with a mask for each run of masked words."""
    near = inner | block.of_gaps(lambda each: _JOINS.fullmatch(each) is not None)
    joined = masked & np.roll(masked, 1) & near & ~block.is_first
    places = block.places
    gone = np.concatenate([places[joined], places[joined] - 1])
    new = np.array([MASK, ""], dtype=object)[np.repeat([0, 1], [masked.sum(), gone.size])]
    return block.rebuilt(rows, np.concatenate([places[masked], gone]), new)
