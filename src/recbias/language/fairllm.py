"""The prompts of FaiRLLM, from its attributes or its results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from annotated_types import Ge, Gt, Le, MinLen

from recbias.core.context import warn
from recbias.core.dataset import Dataset
from recbias.core.errors import MalformedLine, NothingLeft, UnknownColumn, WrongType
from recbias.core.plugins import InputFile
from recbias.core.queries import Queries
from recbias.core.text import suggest
from recbias.formats.tables import read_text_table
from recbias.formats.yaml import MarkedValue, read_marked
from recbias.language.templates import NEUTRAL, add_samples

_PROMPT, _VALUE = "Instruction", "Prompt sensitive attr"
"""The columns of the authors' results with the prompt and the value of the attribute."""

_REPLY_KEYS = frozenset({"result", "response", "output", "reply", "answer", "system_msg", "label"})
"""Columns of a table that are not names or prompts."""


def read_prompts(
    paths: Sequence[Path], sentence: str | None, names: Path | None, n_names: int | None
) -> pd.DataFrame:
    """Return the ``id``, ``text`` and labels of all prompts of the files of ``FaiRLLMPrompts``."""

    def read_file(path: Path) -> pd.DataFrame:
        if path.suffix.lower() != ".json":
            return _read_results(path)
        attributes = read_marked(path).mapping("the attributes")
        return _fill_sentence(attributes, sentence, _read_names(names, path)[:n_names])

    table = pd.concat([read_file(path) for path in paths], ignore_index=True).astype(object)
    is_repeated = table.duplicated()
    if is_repeated.any():
        warn(f"repeated prompts are excluded: {int(is_repeated.sum()):,}")
    table = table[~is_repeated].reset_index(drop=True)
    table.insert(0, "id", _make_ids(table, paths[0]))
    table = table.where(table.notna(), None)
    table[NEUTRAL] = (table["attribute"] == NEUTRAL).astype(float)
    return table


def _fill_sentence(
    attributes: Mapping[str, MarkedValue], sentence: str | None, names: list[str]
) -> pd.DataFrame:
    """Return the sentence with each value of each attribute and each name."""
    if sentence is None:
        message = "the file contains attributes, which need a sentence"
        remedy = "write sentence: I am [value] fan of [name]. What should I watch?"
        raise WrongType(message, where="sentence", remedy=remedy)
    pairs = [
        (attribute, entry.text("a value") if entry.value else "")
        for attribute, values in attributes.items()
        for entry in values.entries(attribute)
    ]
    rows = [
        (attribute, value, name, sentence.replace("[value]", value or "a").replace("[name]", name))
        for (attribute, value), name in product(pairs, names)
    ]
    columns = ["attribute", "value", "name", "text"]
    return _label_prompts(pd.DataFrame(rows, columns=columns, dtype=object))


def _read_names(path: Path | None, attributes: Path) -> list[str]:
    if path is None:
        message, remedy = f"{attributes.name} contains no names", "name a CSV file of names"
        raise WrongType(message, where="names", remedy=remedy)
    table = _read_csv(path)
    column = next((name for name in ("name", "Director") if name in table), table.columns[0])
    cells = table[column].str.strip()
    return cells[cells != ""].drop_duplicates().tolist()


def _read_results(path: Path) -> pd.DataFrame:
    results = _read_csv(path)
    if _PROMPT not in results.columns:
        remedy = suggest(_PROMPT, map(str, results.columns))
        raise UnknownColumn(f"there is no column {_PROMPT!r}", where=str(path), remedy=remedy)
    blank = pd.Series("", index=results.index)
    attribute = path.absolute().parent.name
    prompts = {
        "attribute": NEUTRAL if path.stem.casefold() == NEUTRAL else attribute,
        "text": results[_PROMPT],
        "value": results.get(_VALUE, blank),
        "name": results.get("name", blank).str.strip(),
    }
    return _label_prompts(pd.DataFrame(prompts))


def _label_prompts(prompts: pd.DataFrame) -> pd.DataFrame:
    """Return the prompts with a column for each attribute; a neutral prompt has no value."""
    value = prompts["value"].str.replace(r"^(?:an?)(?:\s+|$)", "", regex=True).str.strip()
    neutral = (value == "") | (prompts["attribute"] == NEUTRAL)
    table = pd.DataFrame({"text": prompts["text"]}, dtype=object)
    table["attribute"] = prompts["attribute"].where(~neutral, NEUTRAL)
    table["value"] = prompts["value"].where(~neutral, None)
    table["name"] = prompts["name"].where(prompts["name"] != "", None)
    for attribute in table.loc[~neutral, "attribute"].unique():
        table[attribute] = value.where(table["attribute"] == attribute, None)
    return table


def _make_ids(table: pd.DataFrame, path: Path) -> Any:
    """Return identifiers such as ``religion:Buddhist:Ang Lee``."""
    value = table["value"].fillna("").map(lambda text: re.sub(r"^an?\s+", "", text))
    ids = table["attribute"] + ":" + value + ":" + table["name"].fillna("")
    ids = ids.str.replace(r":{2,}", ":", regex=True).str.strip(":")
    is_repeated = ids.duplicated()
    if is_repeated.any():
        message = f"two prompts have the identifier {ids[is_repeated].iloc[0]!r}"
        raise MalformedLine(message, where=str(path), remedy="keep one of them")
    return ids.to_numpy(dtype=object)


def _read_csv(path: Path) -> pd.DataFrame:
    table = read_text_table(path)
    names = [name for name in table.columns if name.casefold() not in _REPLY_KEYS]
    if not names:
        message = "has no column of prompts or names"
        raise UnknownColumn(message, where=str(path), remedy=f"name it {_PROMPT!r}, or 'name'")
    return pd.DataFrame({name: table.texts(name) for name in names})


@dataclass(frozen=True, kw_only=True)
class FaiRLLMPrompts:
    """Query with the prompts of FaiRLLM: one sentence, with and without a sensitive attribute.

    The labels of a prompt are the ``attribute`` that it mentions (``religion``; ``neutral`` if it
    mentions none), the ``value`` as written (``a Buddhist``), the ``name`` of the artist or
    director, and, in a column named after the attribute, the value without its article
    (``religion=Buddhist``), which is missing in prompts with another attribute. ``neutral`` is 1
    for neutral prompts and 0 for all others. A file contains one of:

    - **the attributes** (``sst_json.json``: the values of each attribute). The prompts are
      ``sentence`` with every value and every name of ``names``.
    - **the authors' results** (``.csv`` with ``name``, ``Instruction`` and ``Prompt sensitive
      attr``). The prompts are those sent to the model. The attribute is the name of the folder of
      the file, as the authors save them (``top_20/religion/a Buddhist.csv``).

    Prompts of your own are a table with a column ``text``: ``queries: {name: table, path: ...}``.

    Args:
        paths: The files.
        sentence: For the attributes: the prompt, with ``[value]`` and ``[name]``, for example
            ``I am [value] fan of [name].``
        names: For the attributes: a CSV file with the names in the column ``name`` or
            ``Director``, or else in its first column.
        n_names: The number of names that are used, from the first; null for all.
        control_samples: How many more times each neutral prompt is asked, as the control of
            ``identity_effect``; the label ``sample`` of these prompts is 1, 2, ...

    Raises:
        MissingFile: A file does not exist.
        WrongType: ``sentence`` or ``names`` is missing for the attributes, or the sentence lacks
            ``[value]`` or ``[name]``.
        UnknownColumn: A table has no prompts.
        MalformedLine: The attributes are not lists, or two prompts have the same identifier.
        NothingLeft: There are control samples, but no neutral prompt.

    Source:
        Zhang, Bao, Zhang, Wang, Feng and He, "Is ChatGPT Fair for Recommendation? Evaluating
        Fairness in Large Language Model Recommendation", RecSys 2023;
        github.com/jizhi-zhang/FaiRLLM.
    """

    reads_folder_names: ClassVar[bool] = True

    paths: Annotated[tuple[InputFile, ...], MinLen(1)]
    sentence: str | None = None
    names: InputFile | None = None
    n_names: Annotated[int, Gt(0)] | None = None
    control_samples: Annotated[int, Ge(0), Le(100)] = 0

    def __post_init__(self) -> None:
        """Refuse a sentence without its slots before any data is read."""
        for slot in ("[value]", "[name]"):
            if self.sentence is not None and slot not in self.sentence:
                message = f"the sentence has no {slot}"
                remedy = "write it as: I am [value] fan of [name]. What should I watch?"
                raise WrongType(message, where="sentence", remedy=remedy)

    def ask(self, dataset: Dataset | None, rng: np.random.Generator | None) -> Queries:
        """Return the prompts, file by file; the dataset is not used."""
        table = read_prompts(self.paths, self.sentence, self.names, self.n_names)
        if self.control_samples and not (NEUTRAL in table and (table[NEUTRAL] == 1).any()):
            remedy = 'add "neutral": [""] to the attributes, or the file neutral.csv'
            message = "there are no neutral prompts to sample again"
            raise NothingLeft(message, where="control_samples", remedy=remedy)
        return Queries.of_prompts(add_samples(table, self.control_samples))
