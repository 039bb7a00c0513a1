"""Files of FaiRLLM, and records like them, to one row a prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from recbias.core.errors import MalformedLine, MissingFile, UnknownColumn, WrongType
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.formats.yaml.marked_text import MarkedValue, read_marked

Names: TypeAlias = tuple[Path | None, int | None]
"""The file of names, and how many of them are asked."""

PROMPT, VALUE = "Instruction", "Prompt sensitive attr"
"""The columns of the authors' results with the prompt and what it says of the person."""

TEXTS = ("instruction", "prompt", "text", "input")
"""Keys of a record that hold its prompt, the first that is there."""

REPLIES = frozenset({"result", "response", "output", "reply", "answer", "system_msg", "label"})
"""Keys of a record that are no label."""

NEUTRAL = "neutral"


def prompts_of(paths: Sequence[Path], sentence: str | None, names: Names) -> pd.DataFrame:
    """Return the prompts of all files: ``id``, ``text`` and the labels, None where missing.

    Raises:
        MissingFile: A file cannot be read.
        WrongType: The attributes come without a sentence or names.
        UnknownColumn: A table has no prompts.
        MalformedLine: A record has no prompt, or two prompts are called alike.
    """
    parts = [_read(path, sentence, names) for path in paths]
    table = pd.concat(parts, ignore_index=True).astype(object)
    again = table.duplicated()
    if again.any():
        warn(f"{int(again.sum()):,} prompts that stand twice count once")
    table = table[~again].reset_index(drop=True)
    table.insert(0, "id", _ids(table, paths[0]))
    return table.where(table.notna(), None)


def _read(path: Path, sentence: str | None, names: Names) -> pd.DataFrame:
    if path.suffix.lower() != ".json":
        return _results(path)
    tree = read_marked(path)
    if isinstance(tree.value, dict) and _are_attributes(tree.value):
        return _attributes(tree.value, sentence, _names(names, path))
    return _records(tree)


def _are_attributes(top: Mapping[str, MarkedValue]) -> bool:
    """Return whether a mapping is of attributes to their values, not of columns with a prompt."""
    lists = all(isinstance(each.value, tuple) for each in top.values())
    texts = lists and all(
        isinstance(entry.value, str) for each in top.values() for entry in each.entries("it")
    )
    return texts and not {name.casefold() for name in top} & set(TEXTS)


def _attributes(
    top: Mapping[str, MarkedValue], sentence: str | None, names: list[str]
) -> pd.DataFrame:
    if sentence is None:
        found = "the attributes come without a sentence"
        remedy = "write sentence: I am [value] fan of [name]. What should I watch?"
        raise WrongType(found, where="sentence", remedy=remedy)
    pairs = [
        (attribute, str(each.value))
        for attribute, values in top.items()
        for each in values.entries(attribute)
    ]
    rows = [(attribute, value, name) for (attribute, value), name in product(pairs, names)]
    table = pd.DataFrame(rows, columns=["attribute", "value", "name"], dtype=object)
    said = [
        sentence.replace("[value]", value or "a").replace("[name]", name)
        for _, value, name in rows
    ]
    return _labelled(table.assign(text=said))


def _names(names: Names, attributes: Path) -> list[str]:
    path, most = names
    if path is None:
        found, remedy = f"{attributes.name} holds no names", "name a CSV of names"
        raise WrongType(found, where="names", remedy=remedy)
    table = _table(path)
    column = next((each for each in ("name", "Director") if each in table), table.columns[0])
    cells = table[column].str.strip()
    return cells[cells != ""].drop_duplicates().tolist()[:most]


def _results(path: Path) -> pd.DataFrame:
    table = _table(path)
    if PROMPT not in table.columns:
        remedy = suggest(PROMPT, map(str, table.columns))
        raise UnknownColumn(f"there is no column {PROMPT!r}", where=str(path), remedy=remedy)
    made = pd.DataFrame({"attribute": path.absolute().parent.name, "text": table[PROMPT]})
    made["value"] = table.get(VALUE, pd.Series("", index=table.index))
    made["name"] = table.get("name", pd.Series("", index=table.index)).str.strip()
    if path.stem.casefold() == NEUTRAL:
        made["attribute"] = NEUTRAL
    return _labelled(made)


def _labelled(table: pd.DataFrame) -> pd.DataFrame:
    """Return the prompts with a column for each attribute; a neutral prompt has no value."""
    bare = table["value"].str.replace(r"^(?:an?)(?:\s+|$)", "", regex=True).str.strip()
    neutral = (bare == "") | (table["attribute"] == NEUTRAL)
    made = pd.DataFrame({"text": table["text"]}, dtype=object)
    made["attribute"] = table["attribute"].where(~neutral, NEUTRAL)
    made["value"] = table["value"].where(~neutral, None)
    made["name"] = table["name"].where(table["name"] != "", None)
    for attribute in made.loc[~neutral, "attribute"].unique():
        made[attribute] = bare.where(made["attribute"] == attribute, None)
    return made


def _records(tree: MarkedValue) -> pd.DataFrame:
    rows = [_record(each) for each in _listed(tree)]
    if not rows:
        raise tree.fault("there are no prompts")
    return pd.DataFrame(rows, dtype=object)


def _listed(tree: MarkedValue) -> list[MarkedValue]:
    """Return the records of a list, of a mapping of records, or of a mapping of columns."""
    if isinstance(tree.value, tuple):
        return list(tree.value)
    top = tree.mapping("the prompts")
    if all(isinstance(each.value, dict) for each in top.values()):
        return list(top.values())
    columns = {name: each.entries(name) for name, each in top.items()}
    sizes = {len(each) for each in columns.values()}
    if len(sizes) > 1:
        raise tree.fault("the columns are not of one length")
    rows = zip(*columns.values(), strict=True)
    return [MarkedValue(dict(zip(columns, row, strict=True)), tree.where) for row in rows]


def _record(node: MarkedValue) -> dict[str, str | None]:
    if isinstance(node.value, str):
        return {"text": node.text("a prompt")}
    known = node.mapping("a prompt")
    cells = {name: each.value for name, each in known.items() if isinstance(each.value, str)}
    keys = {name.casefold(): name for name in cells}
    found = [keys[each] for each in TEXTS if each in keys and cells[keys[each]].strip()]
    if not found:
        raise node.fault("a record has no prompt", remedy=f"name it {', '.join(TEXTS)}")
    said = [found[0]]
    if found[0].casefold() == "instruction" and "input" in keys:
        said.append(keys["input"])
    made: dict[str, str | None] = {"text": "\n".join(cells[each] for each in said if cells[each])}
    others = [each for each in cells if each not in said and each.casefold() not in REPLIES]
    return made | {each: cells[each] or None for each in others}


def _ids(table: pd.DataFrame, path: Path) -> Any:
    """Return ``religion:Buddhist:Ang Lee``, or ``prompt-0001`` for records without these."""
    if "id" in table.columns:
        ids = table.pop("id").astype(object)
    elif {"attribute", "value", "name"} <= set(table.columns):
        value = table["value"].fillna("").map(lambda each: re.sub(r"^an?\s+", "", each))
        ids = table["attribute"] + ":" + value + ":" + table["name"].fillna("")
        ids = ids.str.replace(r":{2,}", ":", regex=True).str.strip(":")
    else:
        width = len(str(len(table)))
        ids = pd.Series([f"prompt-{at:0{width}d}" for at in range(1, len(table) + 1)])
    again = ids.duplicated() | ids.isna()
    if again.any():
        found = f"two prompts are called {ids[again].iloc[0]!r}"
        raise MalformedLine(found, where=str(path), remedy="give each prompt an id of its own")
    return ids.to_numpy(dtype=object)


def _table(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(
            path,
            dtype=str,
            keep_default_na=False,
            encoding="utf-8-sig",
            usecols=lambda name: name.casefold() not in REPLIES,
        )
    except OSError as error:
        raise MissingFile(f"cannot be read: {error.strerror}", where=str(path)) from error
    except (ValueError, UnicodeDecodeError) as error:
        found = str(error).strip().partition("\n")[0]
        raise MalformedLine(f"is not a CSV: {found}", where=str(path)) from error
