"""The LMRec authors' release: recommendations for sentences that differ in one word.

Output tables have a row for each sentence, label and rank; labels and templates of the sentences
are read from them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from annotated_types import MinLen

from recbias.core.context import warn
from recbias.core.dataset import (
    SEPARATOR,
    Attributes,
    Dataset,
    Ids,
    Interactions,
    Queries,
    Vocabulary,
)
from recbias.core.errors import MissingEvidence, MissingFile
from recbias.core.files import has_file
from recbias.core.plugins import InputFile
from recbias.core.text import suggest
from recbias.data.books_yelp import SIGNS
from recbias.formats.tables import TableColumns, read_file
from recbias.formats.text_files import require_file

_COLUMNS = TableColumns(
    needed={
        **dict.fromkeys(("example_label", "input_sentence", "label", "recommended_item"), "id"),
        "rank": "float64",
    },
    optional={
        **dict.fromkeys(("categories", "price"), "text"),
        **dict.fromkeys(("secondary_example_label", "secondary_label"), "text"),
        "avg_stars": "float64",
    },
)

_COMMA_CATEGORIES = (
    "Beer, Wine & Spirits",
    "Books, Mags, Music & Video",
    "Used, Vintage & Consignment",
    "Wills, Trusts, & Probates",
)
"""Yelp's categories with a comma in their name."""

LIST_SEPARATOR = "\x1f"

_BUSINESS = ["recommended_item", "avg_stars", "price_level", "categories"]
"""The columns that identify a business; branches share a name."""


@dataclass(frozen=True, eq=False)
class Outputs:
    """The content of one or more output tables.

    Args:
        rows: A row for each sentence, label and rank, with ``kind``, the columns of the file and
            ``price_level``.
        items: The businesses: ``name``, ``price``, ``price_level``, ``categories``, ``stars``.
        lists: The items of each sentence, the best one first, joined by ``LIST_SEPARATOR``.
    """

    rows: pd.DataFrame
    items: Attributes
    lists: pd.Series[str]


def read_outputs(paths: Sequence[Path]) -> Outputs:
    """Read the rows, businesses and lists of files named ``yelp_qa_<kind>.csv``.

    Raises:
        MissingFile: A file does not exist.
        UnknownColumn: A file lacks a column.
        MalformedLine: A rank is missing.
    """
    rows = pd.concat([_read(path) for path in paths], ignore_index=True)
    rows["business"] = rows.groupby(_BUSINESS, sort=False, dropna=False).ngroup()
    lists = rows.drop_duplicates(["input_sentence", "rank"])
    lists = lists.sort_values(["input_sentence", "rank"], kind="stable")
    lists["branch"] = lists.groupby(["input_sentence", "business"], sort=False).cumcount()
    branches = lists.drop_duplicates(["business", "branch"]).sort_values([*_BUSINESS, "branch"])
    names = branches["recommended_item"]
    number = (names.groupby(names).cumcount() + 1).astype(str)
    branches["id"] = names.where(~names.duplicated(keep=False), names + " (" + number + ")")
    keys = ["business", "branch"]
    named = lists.merge(branches[[*keys, "id"]], on=keys, how="left")
    joined = named.groupby("input_sentence")["id"].agg(LIST_SEPARATOR.join)
    return Outputs(rows, _describe_businesses(branches), joined)


def parse_kind(path: Path) -> str:
    """Return the kind of sentences of a file, from its name.

    >>> parse_kind(Path("yelp_qa_names.csv"))
    'names'
    """
    return path.name.partition(".")[0].removeprefix("yelp_qa_")


def _read(path: Path) -> pd.DataFrame:
    table = read_file(path, _COLUMNS)
    frame: pd.DataFrame = table.cells.to_pandas()
    table.refuse(~np.isfinite(frame["rank"].to_numpy()), "there is no rank", "correct the line")
    for name in [name for name in _COLUMNS.optional if name not in frame.columns]:
        frame[name] = np.nan if name == "avg_stars" else None
    frame = frame.replace({"": None}).assign(kind=parse_kind(path))
    signs = {sign: str(level) for level, sign in enumerate(SIGNS) if sign}
    levels = pd.to_numeric(frame["price"].str.strip().replace(signs), errors="coerce")
    frame["price_level"] = levels.where(levels.isin([1, 2, 3, 4]))
    is_repeated = frame.duplicated(
        ["input_sentence", "label", "secondary_label", "rank", *_BUSINESS]
    )
    if n_repeated := int(is_repeated.sum()):
        warn(f"{path.name}: excluded {n_repeated:,} rows of repeated lists")
    return frame[~is_repeated]


def _describe_businesses(branches: pd.DataFrame) -> Attributes:
    """Return the columns of the businesses in the order of their identifiers."""
    ids, codes = Vocabulary.encode(branches["id"].to_numpy(dtype=object))
    branches = branches.iloc[np.argsort(codes)]
    levels = branches["price_level"].to_numpy(dtype=np.float64)
    columns = {
        "name": branches["recommended_item"].to_numpy(dtype=object),
        "price": SIGNS[np.nan_to_num(levels).astype(int)],
        "price_level": levels,
        "categories": _split_categories(branches["categories"]).to_numpy(dtype=object),
        "stars": branches["avg_stars"].to_numpy(dtype=np.float64),
    }
    return Attributes(ids, pd.DataFrame(columns))


def _split_categories(categories: pd.Series[Any]) -> pd.Series[Any]:
    """Return ``a, b`` as ``a|b``, without splitting names that contain a comma."""
    texts = categories.astype(object)
    for name in _COMMA_CATEGORIES:
        texts = texts.str.replace(name, name.replace(",", "\0"), regex=False)
    texts = texts.str.replace(r",\s*", SEPARATOR, regex=True).str.replace("\0", ",", regex=False)
    return texts.astype(object).where(texts.notna(), None)


_WORD_COLUMNS = {
    "names": "name",
    "relationships": "first",
    **dict.fromkeys(("occupations", "additionalOccupations", "religionplace"), "location"),
}
"""The column of the word of each kind of sentence; ``word`` for other kinds."""

_LABEL_COLUMNS = {
    **dict.fromkeys(("female", "male"), "gender"),
    **dict.fromkeys(("white", "black"), "race"),
    **dict.fromkeys(("old", "young"), "age"),
}
"""The column of each label of the authors; ``label`` for other labels. ``all`` is not a label."""

_PLACE_LABELS = ("location", "place", "religion")

_LABELS_OF_KIND = {
    "names": ("race", "gender"),
    "relationships": ("gender",),
    "pairrelationships": ("first_gender", "second_gender", "orientation"),
    **dict.fromkeys(("occupations", "additionalOccupations", "religionplace"), _PLACE_LABELS),
}
"""The labels of the sentences of a kind."""

_RELIGIONS = {
    **dict.fromkeys(("church", "catholic church", "christian church"), "christian"),
    "mosque": "muslim",
    "synagogue": "jewish",
    "mandir": "hindu",
}
"""The religion of a location."""


def tabulate_sentences(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each sentence, in order of appearance.

    The columns are ``id``, ``text``, ``kind``, ``template``, the words (``name``; ``first`` and
    ``second``; ``location``) and the labels (``race``, ``gender``; ``first_gender``,
    ``second_gender``, ``orientation``; ``place``, ``religion``); a cell that does not apply is
    None. ``rows`` are those of the output tables, one for each sentence, label and rank.
    """
    sentences = rows.drop_duplicates("input_sentence").set_index("input_sentence", drop=False)
    table = pd.DataFrame({"text": sentences["input_sentence"], "kind": sentences["kind"]})
    table["template"] = None
    columns = sentences["kind"].map(lambda kind: _WORD_COLUMNS.get(kind, "word"))
    for column in columns.unique():
        table[column] = sentences["example_label"].where(columns == column, None)
    if sentences["secondary_example_label"].notna().any():
        table["second"] = sentences["secondary_example_label"]
    table = table.join(_pivot_labels(rows))
    if "second" in table.columns:
        table = _add_couple_labels(table, sentences)
    if "location" in table.columns:
        table = _add_place_labels(table)
    table["template"] = _number_templates(table, sentences)
    table.insert(0, "id", _build_ids(table, sentences))
    table = table.astype(object).where(table.notna(), None)
    return table.reset_index(drop=True)


def _pivot_labels(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a column for each type of label, by sentence."""
    pairs = rows[["input_sentence", "label"]].drop_duplicates()
    pairs = pairs[pairs["label"] != "all"]
    pairs = pairs.assign(column=pairs["label"].map(_LABEL_COLUMNS).fillna("label"))
    table = pairs.pivot_table(
        index="input_sentence", columns="column", values="label", aggfunc="first", sort=False
    )
    order = dict.fromkeys(["race", "gender", *pairs["column"]])
    return table.reindex(columns=[name for name in order if name in table.columns])


def _add_couple_labels(table: pd.DataFrame, sentences: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the genders of both words and the orientation of the couple."""
    is_couple = table["second"].notna()
    if "gender" in table.columns:
        table["first_gender"] = table["gender"].where(is_couple, None)
        table["gender"] = table["gender"].where(~is_couple, None)
    else:
        table["first_gender"] = None
    table["second_gender"] = sentences["secondary_label"]
    has_genders = table["first_gender"].notna() & table["second_gender"].notna()
    is_same = table["first_gender"] == table["second_gender"]
    table["orientation"] = np.where(is_same, "homosexual", "heterosexual")
    table["orientation"] = table["orientation"].where(has_genders, None)
    return table.dropna(axis="columns", how="all").assign(template=None)


def _add_place_labels(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the type and the religion of each location."""
    locations = table["location"]
    religion = locations.str.casefold().map(_RELIGIONS)
    is_religious = religion.notna() | (table["kind"] == "religionplace")
    table["place"] = np.where(is_religious, "religion", "location")
    table["place"] = table["place"].where(locations.notna(), None)
    return table.assign(religion=religion)


def _number_templates(table: pd.DataFrame, sentences: pd.DataFrame) -> pd.Series[Any]:
    """Return the template of each sentence, ``<kind>-<number>``; None without a template."""
    words, second_words = sentences["example_label"], sentences["secondary_example_label"]
    second_words = second_words.where(second_words.notna(), None)
    triples = zip(table["text"], words, second_words, strict=True)
    masked = [_mask_words(text, word, second) for text, word, second in triples]
    templates = pd.Series(masked, index=table.index, dtype=object)
    if n_missing := int(templates.isna().sum()):
        warn(f"{n_missing:,} of {len(table):,} sentences lack their word, so have no template")
    by_kind = templates.groupby(table["kind"], sort=False)
    numbers = by_kind.transform(lambda texts: pd.factorize(texts)[0])
    width = max(2, len(str(int(numbers.max()) + 1)))
    names = table["kind"] + "-" + (numbers + 1).astype(int).astype(str).str.zfill(width)
    return names.where(templates.notna(), None)


def _mask_words(text: str, word: str, second_word: str | None) -> str | None:
    """Return a sentence with ``[]`` for its words, None if it does not contain them."""
    if second_word:
        text, count = _mask_word(second_word, text)
        text = re.sub(r"\b(?:his|her|their)(?= \[\])", "his/her", text)
        if not count:
            return None
    text, count = _mask_word(word, text)
    return text if count else None


def _mask_word(word: str, text: str) -> tuple[str, int]:
    return re.subn(rf"(?<!\w){re.escape(word)}(?!\w)", "[]", text)


def _build_ids(table: pd.DataFrame, sentences: pd.DataFrame) -> Ids:
    """Return ``names-01:Allison``; the sentence itself if that is missing or not unique."""
    second_word = sentences["secondary_example_label"]
    ids = table["template"] + ":" + sentences["example_label"]
    ids = ids.where(second_word.isna(), ids + ":" + second_word.fillna(""))
    is_ambiguous = ids.isna() | ids.duplicated(keep=False)
    cells: Ids = ids.where(~is_ambiguous, table["text"]).to_numpy(dtype=object)
    return cells


_NAME = "lmrec-release"
_OUTPUTS = Path("data", "bias_analysis", "yelp", "output_dataframes")
_TEXT, _LIST = "text", "recommended"
"""The user columns of the sentence and of its list."""

_City: TypeAlias = Literal[
    "Atlanta", "Austin", "Boston", "Cambridge", "Columbus", "Orlando", "Portland", "Toronto"
]
_SUFFIXES = {"5f": "_5f", "first": "", "neutralized": "_Neutralized"}


@dataclass(frozen=True, kw_only=True)
class LMRecRelease:
    """LMRec authors' release: what their model recommended in a city to each input sentence.

    Users are the input sentences, named like the prompts of ``templates``
    (``names-01:Allison``), with their text and labels. Items are the businesses, with ``name``,
    ``price`` (``$`` to ``$$$$``), ``price_level`` (1 to 4), ``categories`` (``A|B``) and
    ``stars``. There are no interactions. Use ``queries: lmrec-release`` and evaluate the authors'
    lists with the model ``lmrec_lists``. For several cities, name one dataset for each city.

    The identifier of an item is its name. A number is added (``Bell Street Burritos (2)``) only
    if several businesses share the name: they differ in stars, price or categories, or are in one
    list. A sentence has one row in the files for each label; here it is one query with all its
    labels. A repeated list counts once.

    Args:
        city: The city of the outputs.
        kinds: The kinds of sentences: ``names``, ``relationships``, ``pairrelationships``,
            ``age``, ``occupations``, ``additionalOccupations`` and others, as the files are named.
        outputs: The version of the outputs: ``5f`` for the last version, ``first`` for the first,
            ``neutralized`` for neutralized test sentences.
        missing: ``error`` to stop at a kind without a file (``.csv``, else ``.xlsx``); ``skip`` to
            read the others and name it in a warning, and to skip the city if it has none of them.
        path: A file ``yelp_qa_<kind>.csv`` in another folder; ``city``, ``kinds`` and ``outputs``
            are then ignored.
        folder: The folder below the data folder.

    Raises:
        MissingFile: A file is missing; ``recbias data fetch lmrec-release`` downloads it.
        UnknownColumn: A file lacks a column.
        MalformedLine: A rank is missing.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended Bias in Language Model-driven
        Conversational Recommendation", 2022; github.com/TinaBBB/Unintended-Bias-LMRec.
    """

    city: _City = "Boston"
    kinds: Annotated[tuple[str, ...], MinLen(1)] = ("names",)
    outputs: Literal["5f", "first", "neutralized"] = "5f"
    missing: Literal["error", "skip"] = "error"
    path: InputFile | None = None
    folder: str = _NAME

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return frozenset({"users", "items"})

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        present, absent = self._find_outputs(data)
        if present and (not absent or self.missing == "skip"):
            return present
        kind, path = next(iter(absent.items()))
        kinds = [parse_kind(file) for file in path.parent.glob("yelp_qa_*.*")]
        remedy = suggest(kind, kinds) if kinds else f"recbias data fetch {_NAME}, or name a city"
        raise MissingFile(f"no outputs of the kind {kind!r}", where=str(path), remedy=remedy)

    def _find_outputs(self, data: Path) -> tuple[list[Path], dict[str, Path]]:
        """Return the files that are there, and the paths of those that are not, by kind."""
        if self.path is not None:
            return [require_file(self.path)], {}
        city = f"{self.city}_output_dataframes{_SUFFIXES[self.outputs]}"
        present: list[Path] = []
        absent: dict[str, Path] = {}
        for kind in dict.fromkeys(self.kinds):
            path = data / self.folder / _OUTPUTS / city / f"yelp_qa_{kind}.csv"
            found = [file for file in (path, path.with_suffix(".xlsx")) if has_file(file)]
            present += found[:1]
            absent |= {} if found else {kind: path}
        return present, absent

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        outputs = read_outputs(self.files(data))
        _, absent = self._find_outputs(data)
        if absent:
            warn(f"{self.city}: there are no outputs of the kinds {', '.join(absent)}")
        sentences = tabulate_sentences(outputs.rows)
        ids = Vocabulary(sentences.pop("id").to_numpy(dtype=object).copy())
        sentences[_LIST] = sentences[_TEXT].map(outputs.lists)
        unknown = {label for kind in absent for label in _LABELS_OF_KIND.get(kind, ())}
        sentences[sorted(unknown - set(sentences.columns))] = None
        rows = Interactions.without_rows(ids, outputs.items.ids)
        return Dataset(rows, Attributes(ids, sentences, "user"), outputs.items)


@dataclass(frozen=True, kw_only=True)
class LMRecSentences:
    """Use each input sentence of the dataset ``lmrec-release`` as one query.

    Labels are those of ``templates``: ``kind``, ``template``, the words (``name``; ``first`` and
    ``second``; ``location``; ``word`` for other kinds), and ``race``, ``gender``;
    ``first_gender``, ``second_gender``, ``orientation``; ``place``, ``religion``; ``age``. The
    template of a sentence is its text without these words; templates are numbered in the order of
    the file.

    Raises:
        MissingEvidence: The dataset is not ``lmrec-release``.
    """

    def ask(self, dataset: Dataset, rng: np.random.Generator) -> Queries:
        """Return a query for each sentence, in the order of the files."""
        users = dataset.users
        if users is None or not {_TEXT, _LIST} <= set(users.names):
            remedy = f"use the dataset {_NAME}, or choose other queries"
            raise MissingEvidence("the dataset has no input sentences", remedy=remedy)
        texts = users.frame[_TEXT].to_numpy(dtype=object)
        labels = Attributes(users.ids, users.frame.drop(columns=[_TEXT, _LIST]), "query")
        no_users = np.full(len(users.ids), -1, dtype=np.int32)
        return Queries(users.ids, labels, no_users, texts, "prompt")
