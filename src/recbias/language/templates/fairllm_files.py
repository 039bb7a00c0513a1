"""Files of FaiRLLM and files of records, read as one row per prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.core.errors import MalformedLine, UnknownColumn, WrongType
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.formats.tables import read_text_table
from recbias.formats.yaml import MarkedValue, read_marked
from recbias.language.templates.template_sets import NEUTRAL

PROMPT, VALUE = "Instruction", "Prompt sensitive attr"
"""The columns of the authors' results with the prompt and the value of the attribute."""

PROMPT_KEYS = ("instruction", "prompt", "text", "input")
"""Keys of a record for its prompt; the first that occurs is used."""

REPLY_KEYS = frozenset({"result", "response", "output", "reply", "answer", "system_msg", "label"})
"""Keys of a record that are not labels."""


def read_prompts(
    paths: Sequence[Path], sentence: str | None, names: Path | None, n_names: int | None
) -> pd.DataFrame:
    """Return the ``id``, ``text`` and labels of all prompts of the files of ``FaiRLLMPrompts``."""

    def read_file(path: Path) -> pd.DataFrame:
        if path.suffix.lower() != ".json":
            return _read_results(path)
        tree = read_marked(path)
        if isinstance(tree.value, dict) and _are_attributes(tree.value):
            return _fill_sentence(tree.value, sentence, _read_names(names, path)[:n_names])
        records = [_parse_record(record) for record in _list_records(tree)]
        if not records:
            raise tree.fault("there are no prompts")
        return pd.DataFrame(records, dtype=object)

    table = pd.concat([read_file(path) for path in paths], ignore_index=True).astype(object)
    is_repeated = table.duplicated()
    if is_repeated.any():
        warn(f"repeated prompts are excluded: {int(is_repeated.sum()):,}")
    table = table[~is_repeated].reset_index(drop=True)
    table.insert(0, "id", _make_ids(table, paths[0]))
    table = table.where(table.notna(), None)
    if "attribute" in table.columns and NEUTRAL not in table.columns:
        table[NEUTRAL] = (table["attribute"] == NEUTRAL).astype(float)
    return table


def _are_attributes(top: Mapping[str, MarkedValue]) -> bool:
    are_texts = all(
        isinstance(node.value, tuple) and all(isinstance(entry.value, str) for entry in node.value)
        for node in top.values()
    )
    return are_texts and not {name.casefold() for name in top} & set(PROMPT_KEYS)


def _fill_sentence(
    attributes: Mapping[str, MarkedValue], sentence: str | None, names: list[str]
) -> pd.DataFrame:
    """Return the sentence with each value of each attribute and each name."""
    if sentence is None:
        message = "the file contains attributes, which need a sentence"
        remedy = "write sentence: I am [value] fan of [name]. What should I watch?"
        raise WrongType(message, where="sentence", remedy=remedy)
    pairs = [
        (attribute, str(entry.value))
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
    if PROMPT not in results.columns:
        remedy = suggest(PROMPT, map(str, results.columns))
        raise UnknownColumn(f"there is no column {PROMPT!r}", where=str(path), remedy=remedy)
    blank = pd.Series("", index=results.index)
    attribute = path.absolute().parent.name
    prompts = {
        "attribute": NEUTRAL if path.stem.casefold() == NEUTRAL else attribute,
        "text": results[PROMPT],
        "value": results.get(VALUE, blank),
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


def _list_records(tree: MarkedValue) -> list[MarkedValue]:
    """Return the records of a list, of a mapping of records, or of a mapping of columns."""
    if isinstance(tree.value, tuple):
        return list(tree.value)
    top = tree.mapping("the prompts")
    if all(isinstance(node.value, dict) for node in top.values()):
        return list(top.values())
    columns = {name: node.entries(name) for name, node in top.items()}
    if len({len(entries) for entries in columns.values()}) > 1:
        raise tree.fault("the columns differ in length")
    rows = zip(*columns.values(), strict=True)
    return [MarkedValue(dict(zip(columns, row, strict=True)), tree.where) for row in rows]


def _parse_record(record: MarkedValue) -> dict[str, str | None]:
    """Return the prompt of a record as ``text``, and its labels."""
    if isinstance(record.value, str):
        return {"text": record.text("a prompt")}
    nodes = record.mapping("a prompt")
    cells = {name: node.value for name, node in nodes.items() if isinstance(node.value, str)}
    keys = {name.casefold(): name for name in cells}
    filled = [key for key in PROMPT_KEYS if key in keys and cells[keys[key]].strip()]
    if not filled:
        raise record.fault("a record has no prompt", remedy=f"name it {', '.join(PROMPT_KEYS)}")
    used = [keys[filled[0]]]
    if filled[0] == "instruction" and "input" in keys:
        used.append(keys["input"])
    text = "\n".join(cells[name] for name in used if cells[name])
    labels = {
        name: cell or None
        for name, cell in cells.items()
        if name not in used and name.casefold() not in REPLY_KEYS
    }
    return {"text": text, **labels}


def _make_ids(table: pd.DataFrame, path: Path) -> Any:
    """Return ``religion:Buddhist:Ang Lee``, or ``prompt-0001`` for records without these columns.

    An ``id`` column is removed from the table and used instead.
    """
    if "id" in table.columns:
        ids = table.pop("id").astype(object)
    elif {"attribute", "value", "name"} <= set(table.columns):
        value = table["value"].fillna("").map(lambda text: re.sub(r"^an?\s+", "", text))
        ids = table["attribute"] + ":" + value + ":" + table["name"].fillna("")
        ids = ids.str.replace(r":{2,}", ":", regex=True).str.strip(":")
    else:
        width = len(str(len(table)))
        ids = pd.Series([f"prompt-{number:0{width}d}" for number in range(1, len(table) + 1)])
    is_invalid = ids.duplicated() | ids.isna()
    if is_invalid.any():
        message = f"two prompts have the identifier {ids[is_invalid].iloc[0]!r}"
        raise MalformedLine(message, where=str(path), remedy="give each prompt a different id")
    return ids.to_numpy(dtype=object)


def _read_csv(path: Path) -> pd.DataFrame:
    table = read_text_table(path)
    names = [name for name in table.columns if name.casefold() not in REPLY_KEYS]
    if not names:
        message = "has no column of prompts or names"
        raise UnknownColumn(message, where=str(path), remedy=f"name it {PROMPT!r}, or 'name'")
    return pd.DataFrame({name: table.texts(name) for name in names})
