"""The input sentences of the LMRec authors: their labels and templates."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import Ids
from recbias.core.errors import MalformedLine
from recbias.core.stage_context import warn

WORD_COLUMNS = {
    "names": "name",
    "relationships": "first",
    **dict.fromkeys(("occupations", "additionalOccupations", "religionplace"), "location"),
}
"""The column of the word of each kind of sentence; ``word`` for other kinds."""

LABEL_COLUMNS = {
    **dict.fromkeys(("female", "male"), "gender"),
    **dict.fromkeys(("white", "black"), "race"),
    **dict.fromkeys(("old", "young"), "age"),
}
"""The column of each label of the authors; ``label`` for other labels. ``all`` is not a label."""

_PLACE_LABELS = ("location", "place", "religion")

LABELS_OF_KIND = {
    "names": ("race", "gender"),
    "relationships": ("gender",),
    "pairrelationships": ("first_gender", "second_gender", "orientation"),
    **dict.fromkeys(("occupations", "additionalOccupations", "religionplace"), _PLACE_LABELS),
}
"""The labels of the sentences of a kind."""

RELIGIONS = {
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

    Raises:
        MalformedLine: A sentence has two values of one label.
    """
    sentences = rows.drop_duplicates("input_sentence").set_index("input_sentence", drop=False)
    table = pd.DataFrame({"text": sentences["input_sentence"], "kind": sentences["kind"]})
    table["template"] = None
    columns = sentences["kind"].map(lambda kind: WORD_COLUMNS.get(kind, "word"))
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
    pairs = pairs.assign(column=pairs["label"].map(LABEL_COLUMNS).fillna("label"))
    is_repeated = pairs.duplicated(["input_sentence", "column"]).to_numpy()
    if is_repeated.any():
        sentence, label = pairs[is_repeated].iloc[0][["input_sentence", "label"]]
        message = f"{sentence!r} has two values of one label, one is {label!r}"
        raise MalformedLine(message, remedy="keep the rows of one of them")
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
    religion = locations.str.casefold().map(RELIGIONS)
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
