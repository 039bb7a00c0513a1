"""The input sentences of the LMRec authors: their labels and their templates."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import Ids
from recbias.core.errors import MalformedLine
from recbias.core.stage_context import warn

SLOTS = {
    "names": "name",
    "relationships": "first",
    **dict.fromkeys(("occupations", "additionalOccupations", "religionplace"), "location"),
}
"""What the word of a kind of sentences is called; that of any other is called ``word``."""

LABELS = {
    **dict.fromkeys(("female", "male"), "gender"),
    **dict.fromkeys(("white", "black"), "race"),
    **dict.fromkeys(("old", "young"), "age"),
}
"""Which column a label of the authors belongs in; others are called ``label``, ``all`` is none."""

RELIGIONS = {
    **dict.fromkeys(("church", "catholic church", "christian church"), "christian"),
    "mosque": "muslim",
    "synagogue": "jewish",
    "mandir": "hindu",
}
"""The religion of a place."""


def sentences_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each sentence, in order of appearance.

    The columns are ``id``, ``text``, ``kind``, ``template``, the words (``name``; ``first`` and
    ``second``; ``location``) and the labels (``race``, ``gender``; ``first_gender``,
    ``second_gender``, ``orientation``; ``place``, ``religion``); a cell that does not apply is
    None.

    Args:
        rows: Rows of output tables, one for each sentence, label and rank.

    Raises:
        MalformedLine: A sentence has two values of one label.
    """
    single = rows.drop_duplicates("input_sentence").set_index("input_sentence", drop=False)
    made = pd.DataFrame({"text": single["input_sentence"], "kind": single["kind"]})
    made["template"] = None
    slots = single["kind"].map(lambda kind: SLOTS.get(kind, "word"))
    for slot in slots.unique():
        made[slot] = single["example_label"].where(slots == slot, None)
    if single["secondary_example_label"].notna().any():
        made["second"] = single["secondary_example_label"]
    made = made.join(_labels(rows))
    if "second" in made.columns:
        made = _couples(made, single)
    if "location" in made.columns:
        made = _places(made)
    made["template"] = _templates(made, single)
    made.insert(0, "id", _ids(made, single))
    made = made.astype(object).where(made.notna(), None)
    return made.reset_index(drop=True)


def _labels(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a column for each kind of label, by sentence: a sentence stands once for each."""
    pairs = rows[["input_sentence", "label"]].drop_duplicates()
    pairs = pairs[pairs["label"] != "all"]
    columns = pairs["label"].map(LABELS).fillna("label")
    again = pairs.assign(column=columns).duplicated(["input_sentence", "column"])
    if again.any():
        at = pairs[again.to_numpy()].iloc[0]
        found = f"{at['input_sentence']!r} has two values of one label, one is {at['label']!r}"
        raise MalformedLine(found, remedy="keep the rows of one of them")
    known = pairs.assign(column=columns)
    order = list(dict.fromkeys(each for each in ("race", "gender", *columns)))
    wide = known.pivot_table(
        index="input_sentence", columns="column", values="label", aggfunc="first", sort=False
    )
    return wide.reindex(columns=[each for each in order if each in wide.columns])


def _couples(made: pd.DataFrame, single: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the genders of both words, and what follows from them."""
    pair = made["second"].notna()
    if "gender" in made.columns:
        made["first_gender"] = made["gender"].where(pair, None)
        made["gender"] = made["gender"].where(~pair, None)
    else:
        made["first_gender"] = None
    made["second_gender"] = single["secondary_label"]
    known = made["first_gender"].notna() & made["second_gender"].notna()
    same = made["first_gender"] == made["second_gender"]
    made["orientation"] = np.where(same, "homosexual", "heterosexual")
    made["orientation"] = made["orientation"].where(known, None)
    return made.dropna(axis="columns", how="all").assign(template=None)


def _places(made: pd.DataFrame) -> pd.DataFrame:
    places = made["location"]
    religion = places.str.casefold().map(RELIGIONS)
    holy = religion.notna() | (made["kind"] == "religionplace")
    made["place"] = np.where(holy, "religion", "location")
    made["place"] = made["place"].where(places.notna(), None)
    made["religion"] = religion
    return made


def _templates(made: pd.DataFrame, single: pd.DataFrame) -> pd.Series[Any]:
    """Return the template of each sentence: what is left of it when its words are blanked."""
    words, second = single["example_label"], single["secondary_example_label"]
    parts = zip(made["text"], words, second.where(second.notna(), None), strict=True)
    blanked = pd.Series([_blanked(*each) for each in parts], index=made.index, dtype=object)
    lost = int(blanked.isna().sum())
    if lost:
        warn(f"{lost:,} of {len(made):,} sentences lack their word, so they have no template")
    numbers = blanked.groupby(made["kind"], sort=False).transform(
        lambda each: pd.factorize(each)[0]
    )
    width = max(2, len(str(int(numbers.max()) + 1)))
    names = made["kind"] + "-" + (numbers + 1).astype(int).astype(str).str.zfill(width)
    return names.where(blanked.notna(), None)


def _blanked(text: str, word: str, second: str | None) -> str | None:
    """Return a sentence without its words, None where it does not hold them."""
    if second:
        text, count = _without(second, text)
        text = re.sub(r"\b(?:his|her|their)(?= \[\])", "his/her", text)
        if not count:
            return None
    text, count = _without(word, text)
    return text if count else None


def _without(word: str, text: str) -> tuple[str, int]:
    return re.subn(rf"(?<!\w){re.escape(word)}(?!\w)", "[]", text)


def _ids(made: pd.DataFrame, single: pd.DataFrame) -> Ids:
    """Return ``names-01:Allison``; the sentence itself where that is not known or not unique."""
    second = single["secondary_example_label"]
    ids = made["template"] + ":" + single["example_label"]
    ids = ids.where(second.isna(), ids + ":" + second.fillna(""))
    unclear = ids.isna() | ids.duplicated(keep=False)
    cells: Ids = ids.where(~unclear, made["text"]).to_numpy(dtype=object)
    return cells
