"""Words of texts: their language, and the names of items and persons, masked or listed.

Texts are divided into words and the separators between them. ``Language`` keeps the reviews in one
language; ``MaskNames`` replaces names in reviews by ``[MASK]``; ``find_people`` lists the people
that texts mention.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, ClassVar, Literal, get_args

import numpy as np
import pandas as pd
from annotated_types import Ge, Le

from recbias.core.context import record_fact, report_progress
from recbias.core.dataset import (
    SEPARATOR,
    AnyArray,
    BoolArray,
    Dataset,
    Ids,
    Reviews,
    encode_pairs,
)
from recbias.core.errors import (
    MissingEvidence,
    NothingLeft,
    UnknownColumn,
    WrongType,
    at_setting,
)
from recbias.core.evidence import MASK
from recbias.core.machine import release_between
from recbias.core.plugins import Device, ModelName
from recbias.formats.yaml import read_marked
from recbias.kernels.devices import find_device
from recbias.language.local_models import (
    batch_by_tokens,
    load_token_classifier,
    load_tokenizer,
    pad_tokens,
)
from recbias.language.model_files import find_model, list_model_files
from recbias.language.terms import find_packaged

CHARACTERS_PER_BLOCK = 2**22
"""The approximate number of characters in a block of texts."""

_WORD = re.compile(r"([^\W_]+(?:['’][^\W_]+)*)")
"""A word: letters and digits, with apostrophes inside."""

_SENTENCE_END = re.compile(r"[.!?…:\n\r]")


@dataclass(frozen=True, eq=False)
class TextWords:
    """Texts, in Unicode normalization form C, divided into words.

    Args:
        pieces: For each text, separators and words in turn, beginning and ending with a separator
            that may be empty: ``object[2 w + t]`` for ``w`` words in ``t`` texts.
        starts: The position of the first piece of each text, and the end: ``int64[t + 1]``.
    """

    texts: list[str]
    pieces: Ids
    starts: AnyArray

    @classmethod
    def from_texts(cls, texts: Ids) -> TextWords:
        """Divide texts into words.

        >>> block = TextWords.from_texts(np.array(["Try Wendy's, it's good!", ""], dtype=object))
        >>> block.words.tolist(), block.text.tolist()
        (['Try', "Wendy's", "it's", 'good'], [0, 0, 0, 0])
        """
        normalized = [unicodedata.normalize("NFC", text) for text in texts]
        divided = [_WORD.split(text) for text in normalized]
        sizes = np.array([len(pieces) for pieces in divided], dtype=np.int64)
        all_pieces = np.empty(int(sizes.sum()), dtype=object)
        all_pieces[:] = [piece for pieces in divided for piece in pieces]
        return cls(normalized, all_pieces, np.concatenate([[0], np.cumsum(sizes)]))

    @cached_property
    def text(self) -> AnyArray:
        """The index of the text of each word, ``int64[w]``."""
        return np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts) // 2)

    @cached_property
    def positions(self) -> AnyArray:
        """The position of each word in ``pieces``, ``int64[w]``."""
        return 2 * np.arange(self.text.size) + self.text + 1

    @cached_property
    def words(self) -> Ids:
        """The words as written, text by text, ``object[w]``."""
        return self.pieces[self.positions]

    @cached_property
    def _spellings(self) -> tuple[AnyArray, Ids]:
        return pd.factorize(self.words)

    def map_words(self, function: Callable[[str], int | bool]) -> AnyArray:
        """Return the function's value for each word; it is called once per distinct spelling."""
        codes, spellings = self._spellings
        return np.array([function(word) for word in spellings] or [0])[codes]

    def match_words(self, predicate: Callable[[str], bool]) -> BoolArray:
        """Return which words satisfy a predicate, ``bool[w]``."""
        return np.asarray(self.map_words(predicate), dtype=bool)

    def match_separators(self, predicate: Callable[[str], bool]) -> BoolArray:
        """Return for which words the separator before them satisfies a predicate, ``bool[w]``."""
        codes, separators = pd.factorize(self.pieces[self.positions - 1])
        return np.array([predicate(text) for text in separators] or [False], dtype=bool)[codes]

    @cached_property
    def is_capitalized(self) -> BoolArray:
        """Whether each word does not begin with a lower-case letter."""
        return self.match_words(lambda word: not word[0].islower())

    @cached_property
    def is_first(self) -> BoolArray:
        """Whether each word is the first of its text."""
        return np.diff(self.text, prepend=-1) > 0

    @cached_property
    def begins_sentence(self) -> BoolArray:
        """Whether each word is the first of its text or follows ``.``, ``!``, ``?``, ``:``."""
        ends = self.match_separators(lambda text: _SENTENCE_END.search(text) is not None)
        return self.is_first | ends

    def find_spans(self) -> tuple[AnyArray, AnyArray]:
        """Return the start and end of each word in its text, in characters."""
        lengths = np.array([len(piece) for piece in self.pieces], dtype=np.int64)
        piece_ends = np.cumsum(lengths)
        text_starts = np.concatenate([[0], piece_ends])[self.starts[:-1]]
        ends = piece_ends[self.positions] - text_starts[self.text]
        return ends - lengths[self.positions], ends

    def replace_pieces(self, rows: AnyArray, positions: AnyArray, new: Ids | str) -> Ids:
        """Return the texts ``rows`` with ``new`` pieces at the positions, ``object[r]``."""
        replaced = self.pieces.copy()
        replaced[positions] = new
        pieces = replaced.tolist()
        spans = zip(self.starts[rows].tolist(), self.starts[rows + 1].tolist(), strict=True)
        texts = np.empty(rows.size, dtype=object)
        texts[:] = ["".join(pieces[start:end]) for start, end in spans]
        return texts


def divide_into_blocks(texts: Ids, task: str = "") -> Iterator[tuple[AnyArray, TextWords]]:
    """Yield texts in blocks of limited size: their indices, and the texts divided into words.

    What is completed of a task is reported after each block.
    """
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    start = 0
    while start < len(texts):
        n_before = ends[start - 1] if start else 0
        end = int(np.searchsorted(ends, n_before + CHARACTERS_PER_BLOCK, side="right"))
        end = max(end, start + 1)
        yield np.arange(start, end), TextWords.from_texts(texts[start:end])
        start = end
        if task:
            report_progress(task, end, len(texts))


def _mark_ranges(n: int, start: AnyArray, end: AnyArray) -> BoolArray:
    """Return which of ``n`` positions lie in a range from ``start`` to before ``end``."""
    change = np.zeros(n + 1, dtype=np.int64)
    np.add.at(change, start, 1)
    np.add.at(change, end, -1)
    return np.asarray(np.cumsum(change)[:-1] > 0)


def normalize_word(word: str) -> str:
    """Return a word for comparison: in lower case, without accents and the possessive.

    >>> [normalize_word(word) for word in ("Wendy's", "CAFÉ", "’Ono’s", "D'Agostino")]
    ['wendy', 'cafe', 'ono', 'dagostino']
    """
    word = word.casefold().replace("’", "'").removesuffix("'s").replace("'", "")
    if word.isascii():
        return word
    letters = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


_ANY_CASE, _CAPITALIZED = 2, 1
"""How a phrase must be written to match: in any case, or its first and last word with capitals."""

_BRANCH = re.compile(r"\s*\([^()]*\)\s*$")


@dataclass(frozen=True, eq=False)
class ItemNames:
    """The spellings of the name of each item, as codes of a vocabulary; empty without a name."""

    vocabulary: dict[str, int]
    spellings: list[tuple[tuple[int, ...], ...]]

    @classmethod
    def from_names(cls, names: Iterable[str | None]) -> ItemNames:
        """Encode names; None is an item without a name."""
        vocabulary: dict[str, int] = {}
        spellings = [
            tuple(
                tuple(vocabulary.setdefault(word, len(vocabulary)) for word in words)
                for words in (list_spellings(name) if name else ())
            )
            for name in names
        ]
        return cls(vocabulary, spellings)

    def encode(self, block: TextWords) -> AnyArray:
        """Return the code of each word of the texts, -1 for words in no name."""
        return block.map_words(lambda word: self.vocabulary.get(normalize_word(word), -1))

    def count_foreign_texts(self, block: TextWords, items: AnyArray) -> AnyArray:
        """Count the texts with each word, of items without the word in the name: ``int[v]``."""
        codes, n = self.encode(block), len(self.vocabulary)
        has_code = codes >= 0
        text, code = np.divmod(np.unique(block.text[has_code] * n + codes[has_code]), max(n, 1))
        in_name = np.isin(items[text].astype(np.int64) * n + code, self._item_words)
        return np.bincount(code[~in_name], minlength=n)

    def find_distinctive(
        self, n_foreign: AnyArray, n_reviews: AnyArray, common: float
    ) -> BoolArray:
        """Return which words distinguish the items with the word in their name, ``bool[v]``.

        They occur in at most the share ``common`` of the texts of the other items: ``n_foreign``
        of the words, ``n_reviews`` of each item.
        """
        items, codes = np.divmod(self._item_words, max(len(self.vocabulary), 1))
        n_own = np.bincount(codes, weights=n_reviews[items], minlength=len(self.vocabulary))
        share = n_foreign / np.maximum(n_reviews.sum() - n_own, 1)
        n_letters = np.array([sum(map(str.isalpha, word)) for word in self.vocabulary], dtype=int)
        return np.asarray((share <= common) & (n_letters >= 3))

    @cached_property
    def _item_words(self) -> AnyArray:
        """All pairs of an item and a word of its name, as ``item * v + code``, ascending."""
        n = len(self.vocabulary)
        pairs = {
            item * n + code
            for item, spellings in enumerate(self.spellings)
            for words in spellings
            for code in words
        }
        return np.array(sorted(pairs), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NameTree:
    """Phrases as a prefix tree (trie) of words.

    An edge is ``state * n_words + word``, ascending, and leads to the state in ``targets``.
    ``ends`` is how a phrase that ends in a state must be written; 0 if none does.
    """

    n_words: int
    edges: AnyArray
    targets: AnyArray
    ends: AnyArray

    @classmethod
    def build(cls, names: ItemNames, distinctive: BoolArray, *, per_item: bool) -> NameTree:
        """Build the tree of all names, or ``per_item`` a tree whose initial state is the item.

        The ``distinctive`` words are phrases by themselves.
        """
        n_words = len(names.vocabulary)
        ends = [0] * (len(names.spellings) if per_item else 1)
        targets: dict[int, int] = {}
        for item, words, spelling in _iterate_phrases(names, distinctive):
            state = item if per_item else 0
            for word in words:
                state = targets.setdefault(state * n_words + word, len(ends))
                ends += [0] * (state == len(ends))
            ends[state] = max(ends[state], spelling)
        edges = sorted(targets)
        sorted_targets = np.array([targets[edge] for edge in edges], dtype=np.int64)
        return cls(n_words, np.array(edges, dtype=np.int64), sorted_targets, np.array(ends))

    def find_longest(self, block: TextWords, codes: AnyArray, states: AnyArray) -> AnyArray:
        """Return the number of words of the longest phrase that begins at each word, ``int64[w]``.

        ``codes`` are those of the words, -1 in no phrase; ``states`` the first ones of the texts.
        """
        longest = np.zeros(codes.size, dtype=np.int64)
        begin = np.flatnonzero(codes >= 0)
        state, length = states[block.text[begin]], 0
        while begin.size:
            last = begin + length
            state = self._follow(state, codes[last])
            alive = state >= 0
            begin, state, last, length = begin[alive], state[alive], last[alive], length + 1
            capitals = block.is_capitalized[begin] & block.is_capitalized[last]
            ends = self.ends[state]
            matches = (ends == _ANY_CASE) | ((ends == _CAPITALIZED) & capitals)
            longest[begin[matches]] = length
            continues = last + 1 < codes.size
            continues[continues] = block.text[last[continues] + 1] == block.text[begin[continues]]
            begin, state = begin[continues], state[continues]
        return longest

    def _follow(self, states: AnyArray, codes: AnyArray) -> AnyArray:
        """Return the next state, -1 where no edge has the word."""
        if not self.edges.size:
            return np.full(states.size, -1, dtype=np.int64)
        keys = states * self.n_words + codes
        edge = np.minimum(np.searchsorted(self.edges, keys), self.edges.size - 1)
        exists = (codes >= 0) & (self.edges[edge] == keys)
        return np.where(exists, self.targets[edge], -1)


def list_spellings(name: str) -> list[tuple[str, ...]]:
    """Return the spellings of a name, as normalized words.

    They are the full name and the name without a final bracket, with ``Wendy's`` as ``wendy`` and
    as ``wendys``. A name of fewer than two letters or digits has none.

    >>> list_spellings("Wendy's Grill (Airport)")
    [('wendy', 'grill', 'airport'), ('wendys', 'grill', 'airport'), ('wendy', 'grill'), \
('wendys', 'grill')]
    >>> list_spellings("A"), list_spellings("***")
    ([], [])
    """
    spellings: dict[tuple[str, ...], None] = {}
    name = unicodedata.normalize("NFC", name)
    for variant in (name, _BRANCH.sub("", name)):
        words = _WORD.findall(variant)
        for form in (words, [re.sub("['’]", "", word) for word in words]):
            spelling = tuple(filter(None, map(normalize_word, form)))
            if sum(map(len, spelling)) > 1:
                spellings[spelling] = None
    return list(spellings)


def _iterate_phrases(
    names: ItemNames, distinctive: BoolArray
) -> Iterator[tuple[int, tuple[int, ...], int]]:
    for item, spellings in enumerate(names.spellings):
        for words in spellings:
            distinctive_words = [word for word in words if distinctive[word]]
            yield item, words, _ANY_CASE if distinctive_words else _CAPITALIZED
            yield from ((item, (word,), _ANY_CASE) for word in distinctive_words)


_PERSON_LABELS = {"PER", "PERSON"}  # the labels of models for persons, without B- or I-

_BATCH_TOKENS, _CHUNK_SIZE, _OVERLAP = 4096, 512, 32
"""The tokens of a batch and of a chunk, some of which the next chunk repeats."""


class FirstNames:
    """Finds the first names of the dictionary of gender-guesser, of three letters or more.

    A word is a first name if it is written with one capital (``Emily``) and the texts write it in
    lower case (``will``) at most as often as with a capital inside sentences. At the start of a
    sentence every word has a capital, so such words are not counted.
    """

    def __init__(self) -> None:
        self._codes = _load_first_names()
        self._balance = np.zeros(len(self._codes), dtype=np.int64)

    def learn(self, block: TextWords) -> None:
        """Count how the texts write the words; called with all texts before any search."""
        codes, n = self._encode(block), self._balance.size
        is_name = codes >= 0
        with_capital = is_name & ~block.begins_sentence & _is_title_case(block)
        lower = block.match_words(lambda word: word[0].islower())
        self._balance += np.bincount(codes[with_capital], minlength=n)
        self._balance -= np.bincount(codes[is_name & lower], minlength=n)

    def find(self, block: TextWords) -> BoolArray:
        """Return which words of the texts are first names, ``bool[w]``."""
        codes = self._encode(block)
        return (codes >= 0) & _is_title_case(block) & (self._balance[codes] >= 0)

    def _encode(self, block: TextWords) -> AnyArray:
        return block.map_words(lambda word: self._codes.get(normalize_word(word), -1))


class PersonModel:
    """Finds words that a token-classification model labels as a person; WrongType if it cannot."""

    def __init__(self, name: str, device: Device = "auto") -> None:
        source = find_model(name)
        self._tokenizer = load_tokenizer(source)
        self._model = load_token_classifier(source, device)
        labels = self._model.config.id2label
        suffixes = {code: label.rpartition("-")[2] for code, label in labels.items()}
        codes = [code for code, suffix in suffixes.items() if suffix in _PERSON_LABELS]
        if not codes:
            message = f"{name} has no label PER or PERSON, but {', '.join(labels.values())}"
            raise WrongType(message, where="persons", remedy="name a model that labels persons")
        self._person_codes = np.array(codes)

    def find(self, block: TextWords) -> BoolArray:
        """Return which words of the texts overlap a token of a person, ``bool[w]``."""
        text, start, end = self._find_tokens(block.texts)
        n_words = block.text.size
        if not (text.size and n_words):
            return np.zeros(n_words, dtype=bool)
        stride = max(map(len, block.texts)) + 1
        word_starts, word_ends = (block.text * stride + bound for bound in block.find_spans())
        first = np.searchsorted(word_ends, text * stride + start, side="right")
        after_last = np.searchsorted(word_starts, text * stride + end, side="left")
        return _mark_ranges(n_words, first, np.maximum(after_last, first))

    def _find_tokens(self, texts: list[str]) -> tuple[AnyArray, AnyArray, AnyArray]:
        limit = getattr(self._model.config, "max_position_embeddings", None) or _CHUNK_SIZE
        size = min(_CHUNK_SIZE, limit)
        chunks = self._tokenizer(
            texts,
            truncation=True,
            max_length=size,
            stride=min(_OVERLAP, size // 4),
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        ids, spans = chunks["input_ids"], chunks["offset_mapping"]
        lengths = np.array([len(tokens) for tokens in ids], dtype=np.int64)
        blocks = [np.empty((0, 3), dtype=np.int64)]
        for rows in release_between(batch_by_tokens(lengths, _BATCH_TOKENS)):
            is_person = self._classify([ids[row] for row in rows])
            for row, tokens in zip(rows, is_person, strict=True):
                text_index = chunks["overflow_to_sample_mapping"][row]
                text_column = np.full(len(spans[row]), text_index)
                blocks.append(np.column_stack([text_column, spans[row]])[tokens])
        text, start, end = np.concatenate(blocks).T
        has_text = end > start
        return text[has_text], start[has_text], end[has_text]

    def _classify(self, ids: list[list[int]]) -> list[BoolArray]:
        """Return which tokens of each chunk belong to a person."""
        import torch

        padded, is_token = pad_tokens(ids, self._tokenizer.pad_token_id)
        device = self._model.device
        with torch.inference_mode():
            logits = self._model(
                input_ids=torch.from_numpy(padded).to(device),
                attention_mask=torch.from_numpy(is_token).long().to(device),
            ).logits
        is_person = np.isin(logits.argmax(-1).cpu().numpy(), self._person_codes)
        return [row[real] for row, real in zip(is_person, is_token, strict=True)]


def get_dictionary_path() -> Path:
    """Return the path of the first names of gender-guesser."""
    return Path(str(files("gender_guesser") / "data" / "nam_dict.txt"))


@cache
def _load_first_names() -> dict[str, int]:
    from gender_guesser.detector import Detector

    names = sorted({normalize_word(name) for name in Detector().names})
    return {name: code for code, name in enumerate(name for name in names if len(name) > 2)}


def _is_title_case(block: TextWords) -> BoolArray:
    return block.match_words(lambda word: word[0].isupper() and word[1:].islower())


_JOINING = re.compile(r"[ \t'’&/\-]*")  # the separators between masked words that become one mask


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

    keeps_interactions: ClassVar[bool] = True

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
        for rows, block in divide_into_blocks(reviews.texts, "masking reviews"):
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
        with at_setting("column"):
            cells = dataset.items.column(self.column)
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
        with at_setting("persons"):
            return PersonModel(self.persons, self.device)

    def _build_tree(
        self, names: ItemNames, reviews: Reviews, persons: FirstNames | PersonModel | None
    ) -> NameTree:
        """Count the words of all reviews and return the phrases to mask."""
        n_foreign = np.zeros(len(names.vocabulary), dtype=np.int64)
        for rows, block in divide_into_blocks(reviews.texts, "counting words of reviews"):
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
        return _mark_ranges(lengths.size, first, end), _mark_ranges(lengths.size, first + 1, end)


def _mask_texts(block: TextWords, rows: AnyArray, masked: BoolArray, inner: BoolArray) -> Ids:
    """Return some of the texts with one mask for each run of masked words."""
    is_near = inner | block.match_separators(lambda text: _JOINING.fullmatch(text) is not None)
    joined = masked & np.roll(masked, 1) & is_near & ~block.is_first
    positions = block.positions
    removed = np.concatenate([positions[joined], positions[joined] - 1])
    new = np.array([MASK, ""], dtype=object)[np.repeat([0, 1], [masked.sum(), removed.size])]
    return block.replace_pieces(rows, np.concatenate([positions[masked], removed]), new)


_MAX_SURNAMES = 3
"""Capitalized words after a first name that belong to it, where only first names are found."""


_HYPHENS = {"-", "‐", "‑"}
_DIVIDER = re.compile(r"[\s.,‐‑-]+")


def find_people(texts: Ids, finder: FirstNames | PersonModel, excluded: Ids) -> Ids:
    """Return the people that each text mentions, as ``Betsy Ray|Tacy``; None if there are none.

    Words of a person that only white space or a hyphen divides are one mention, which ends with a
    possessive. A mention is left out if it is of an excluded person: all of its words are in that
    person's name, and it has several words or is the last word of the name; or it follows the last
    word of the name and a comma (``Lovelace, Maud``). Such a name inside a mention divides it:
    of ``Tom Maud Lovelace`` stays ``Tom``. A first name alone may be of another person, so it
    stays.

    Args:
        texts: A text for each item, blank without one.
        finder: What finds the words that name persons.
        excluded: The people of each item that are left out, as ``Maud Hart Lovelace|Lois Lenski``;
            None if there are none.

    >>> texts = np.array(["Betsy Ray met Tacy. Betsy's author is Maud Lovelace."], dtype=object)
    >>> authors = np.array(["Maud Hart Lovelace"], dtype=object)
    >>> find_people(texts, FirstNames(), authors).tolist()
    ['Betsy Ray|Betsy']
    """
    if isinstance(finder, FirstNames):
        for _, block in divide_into_blocks(texts):
            finder.learn(block)
    people = np.full(len(texts), None, dtype=object)
    for rows, block in divide_into_blocks(texts, "finding people"):
        text, mention, before = _find_mentions(block, finder)
        pairs = pd.Series([*zip(mention, before, strict=True)], dtype=object)
        by_text = pairs.groupby(text, sort=True).agg(list)
        for row, mentions in zip(by_text.index.to_numpy(np.int64), by_text, strict=True):
            index = rows[row]
            names = [_split_name(name) for name in str(excluded[index] or "").split(SEPARATOR)]
            left = [
                person
                for name, word in dict.fromkeys(mentions)
                for person in _leave_out(name, word, names)
            ]
            people[index] = SEPARATOR.join(dict.fromkeys(left)) or None
    return people


def _find_mentions(
    block: TextWords, finder: FirstNames | PersonModel
) -> tuple[AnyArray, Ids, Ids]:
    """Return the text of each mention, the mention as written, and the word before its comma."""
    is_person = finder.find(block)
    if not is_person.any():
        empty = np.empty(0, dtype=object)
        return np.empty(0, dtype=np.int64), empty, empty
    owns = block.match_words(lambda word: word.endswith(("'s", "’s")))
    is_inside = ~block.is_first & ~np.roll(owns, 1)
    has_hyphen = is_inside & block.match_separators(lambda text: text in _HYPHENS)
    follows = has_hyphen | (is_inside & block.match_separators(str.isspace))
    if isinstance(finder, FirstNames):
        is_person = _add_surnames(block, is_person, follows)
    begins = is_person & ~(follows & np.roll(is_person, 1))
    words = pd.Series(block.words[is_person]).str.replace(r"['’]s$", "", regex=True)
    joined = np.where(begins[is_person], "", np.where(has_hyphen[is_person], "-", " "))
    parts = pd.Series(joined.astype(object) + words.to_numpy(dtype=object))
    mention = parts.groupby(np.cumsum(begins)[is_person], sort=True).agg("".join)
    has_comma = ~block.is_first & block.match_separators(lambda text: text.strip() == ",")
    before = np.where(has_comma, np.roll(block.words, 1), "")[begins]
    return block.text[begins], mention.to_numpy(dtype=object), before


def _add_surnames(block: TextWords, is_person: BoolArray, follows: BoolArray) -> BoolArray:
    may_follow = follows & block.match_words(lambda word: word[0].isupper())
    for _ in range(_MAX_SURNAMES):
        is_person = is_person | (may_follow & np.roll(is_person, 1))
    return is_person


def _split(name: str) -> list[str]:
    return [*filter(None, map(normalize_word, _DIVIDER.split(name)))]


def _split_name(name: str) -> list[str]:
    """Return the words of a name, the last name last, also of ``Lovelace, Maud Hart``."""
    before_comma, _, after_comma = name.partition(",")
    return _split(f"{after_comma} {before_comma}")


def _leave_out(mention: str, before: str, names: list[list[str]]) -> list[str]:
    """Return the parts of a mention without the excluded names."""
    words = _split(mention)
    for name in filter(None, names):
        if set(words) <= set(name) and (
            len(words) > 1 or words[-1:] == name[-1:] or _split(before)[-1:] == name[-1:]
        ):
            return []
    written = mention.split()
    divided = [_split(word) for word in written]
    for name in names:
        for start in range(len(written)):
            end = start
            while end < len(written) and divided[end] and set(divided[end]) <= set(name):
                end += 1
            if end - start > 1:
                parts = (" ".join(written[:start]), " ".join(written[end:]))
                return [left for part in parts if part for left in _leave_out(part, "", names)]
    return [mention]


_Code = Literal["en", "fr", "de", "es", "it", "pt", "nl"]


@dataclass(frozen=True, kw_only=True)
class Language:
    """Keep the reviews in one language.

    A text is of another language if it has two more of the most frequent words of that one (of
    Spanish ``la``, ``que``, ``muy``) than of the one that is kept, or if most of its words are of
    another script than the Latin one. ``Great food!``, with none of any, is kept. A user's
    interaction with an item is excluded if all of its reviews are.

    Args:
        keep: The language: ``en``, ``fr``, ``de``, ``es``, ``it``, ``pt`` or ``nl``.

    Raises:
        MissingEvidence: The dataset has no review texts.
        NothingLeft: No review is of that language.

    Source:
        Grefenstette, "Comparing two language identification schemes", JADT 1995: the short words
        of a language.
    """

    keep: _Code = "en"

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return the dataset of the reviews in the language."""
        reviews, rows = dataset.reviews, dataset.interactions
        if reviews is None:
            remedy = "choose a dataset with review texts, and keep them"
            raise MissingEvidence("the dataset has no reviews, hence no language", remedy=remedy)
        is_kept = find_language(reviews.texts, self.keep)
        if not is_kept.any():
            raise NothingLeft(f"language {self.keep} left 0 of the {len(reviews):,} reviews")
        pairs = reviews.users.astype(np.int64) * max(rows.n_items, 1) + reviews.items
        of_row = encode_pairs(rows)
        is_lost = np.isin(of_row, pairs) & ~np.isin(of_row, pairs[is_kept])
        kept = np.flatnonzero(is_kept)
        reviews = replace(
            reviews,
            users=reviews.users[kept],
            items=reviews.items[kept],
            texts=reviews.texts[kept],
        )
        counts = dataset.counts | {"reviews_in_other_languages": int((~is_kept).sum())}
        return replace(dataset, reviews=reviews, counts=counts).select_rows(~is_lost)


@cache
def _load_frequent_words() -> dict[str, frozenset[str]]:
    """Return the most frequent words of each language."""
    languages = read_marked(find_packaged("words", "frequent.yaml")).mapping("the words")
    return {code: frozenset(words.text(code).split()) for code, words in languages.items()}


def find_language(texts: Ids, language: _Code) -> BoolArray:
    """Return which texts are in a language, ``bool[t]``.

    >>> texts = np.array(["The food was good", "La comida es muy rica", "Wow!", "很好吃"])
    >>> find_language(texts.astype(object), "en").tolist()
    [True, False, True, False]
    """
    is_in = np.zeros(len(texts), dtype=bool)
    for rows, block in divide_into_blocks(texts, "identifying languages"):
        counts = {code: _count_frequent(block, code) for code in get_args(_Code)}
        most = np.max([*counts.values()], axis=0)
        has_script = block.match_words(lambda word: word[0] < "ɐ")  # the letters of Latin end
        n_words, n_latin = (
            np.bincount(block.text, weights=weights, minlength=rows.size)
            for weights in (None, has_script)
        )
        is_in[rows] = (counts[language] > most - 2) & (2 * n_latin >= n_words)
    return is_in


def _count_frequent(block: TextWords, language: _Code) -> AnyArray:
    words = _load_frequent_words()[language]
    is_frequent = block.match_words(lambda word: word.casefold().replace("’", "'") in words)
    n_texts = block.starts.size - 1
    return np.bincount(block.text, weights=is_frequent, minlength=n_texts)
