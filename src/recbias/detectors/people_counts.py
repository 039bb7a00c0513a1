"""How many men and women each item names, by first names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, FloatArray, Ids
from recbias.core.dataset.attributes import SEPARATOR, Attributes
from recbias.core.errors import UnknownColumn
from recbias.detectors.first_names import first_name, gender_of


def read_column(items: Attributes, name: str, setting: str) -> Ids:
    """Return a column of people or of texts, None in missing cells: ``object[n_items]``.

    Raises:
        UnknownColumn: There is no such column, or it holds numbers; the place is the setting.
    """
    try:
        column = items.column(name)
    except UnknownColumn as error:
        raise UnknownColumn(error.message, where=setting, remedy=error.remedy) from error
    if column.dtype.kind == "f" and column.notna().any():
        message = f"column {name!r} of the items holds numbers, not names of people"
        raise UnknownColumn(message, where=setting)
    return np.array(column.astype(object).where(column.notna(), None), dtype=object)


def count_people(people: Ids, *, near: bool, unique: bool, halves: bool) -> FloatArray:
    """Return the men, the people of known gender and all people of each item: ``float64[n, 3]``.

    Args:
        people: ``Tom Hanks|Annie Potts``; None for nobody, ``object[n]``.
        near: Whether first names are also looked up in other spellings.
        unique: Whether a first name counts once per item.
        halves: Whether an unknown double name has the gender of its first half.

    >>> people = np.array(["Tom Hanks|Annie Potts|Zopon", None], dtype=object)
    >>> count_people(people, near=False, unique=False, halves=False).tolist()
    [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]
    """
    n_items = len(people)
    cells: pd.Series[Any] = pd.Series(people, dtype=object).dropna().astype(str)
    cells = cells.str.split(SEPARATOR, regex=False).explode()
    person_codes, persons = pd.factorize(cells)
    first_names = np.array([first_name(person, near=near) for person in persons], dtype=object)
    person_names, names = pd.factorize(first_names)
    signs = np.array([_find_gender(name, near=near, halves=halves) for name in names], np.int8)
    rows, codes = cells.index.to_numpy(dtype=np.int64), person_names[person_codes]
    n_mentioned = np.bincount(rows, minlength=n_items)
    if unique:
        rows, codes = _count_once(rows, codes, max(len(names), 1))
    men, women = (np.bincount(rows[signs[codes] == sign], minlength=n_items) for sign in (1, -1))
    return np.column_stack([men, men + women, n_mentioned]).astype(np.float64)


def _count_once(rows: AnyArray, codes: AnyArray, n_names: int) -> tuple[AnyArray, AnyArray]:
    rows, codes = np.divmod(np.unique(rows * n_names + codes), n_names)
    return rows, codes


def _find_gender(name: str, *, near: bool, halves: bool) -> int:
    """Return the gender of a first name, or of its first half if it has a hyphen."""
    gender = gender_of(name, near=near)
    first, hyphen, _ = name.partition("-")
    return gender_of(first, near=near) if halves and hyphen and not gender else gender
