"""What a log of impressions shows, and candidates that would show something else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from recbias.core.context import warn
from recbias.core.dataset import Codes, Queries, TrainingData
from recbias.core.errors import MalformedLine, UnknownColumn
from recbias.core.evidence import Policy
from recbias.core.plugins import InputFile, Output
from recbias.core.text import suggest
from recbias.formats.tables import TableColumns, read_file
from recbias.models.given import read_once

_COLUMNS = TableColumns(
    needed={"item_id": "id"},
    optional={"user_id": "id", "position": "text", "rank": "text", "probability": "text"},
    others=True,
)
_OWN = ["item_id", "position", "probability"]
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class _FittedPolicy:
    """A policy."""

    chosen: Policy

    def policy(self, queries: Queries) -> Policy:
        """Return the policy."""
        return self.chosen


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a log of impressions shows: of the whole log, or of one variant of an A/B test.

    Its ``policy_value`` is the mean reward, as no estimate is needed. Two variants are compared by
    all users of either, each of whom may be in one of them or in both.

    Args:
        variant: The value of the column ``variant``.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"policy", "shown"})
    needs: ClassVar[frozenset[str]] = frozenset({"log"})
    libraries: ClassVar[tuple[str, ...]] = ("pyarrow",)

    variant: str | None = None

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedPolicy:
        """Return what was shown; nothing is trained."""
        return _FittedPolicy(Policy.of_shown(self.variant or ""))


@dataclass(frozen=True, kw_only=True)
class GivenPolicy:
    """A candidate that is valued on a log of impressions: its probability of each item.

    The table has ``item_id`` and ``probability``, and where they matter ``position`` (from 1) and
    ``user_id``, or labels of the users (``gender``) whose values have probabilities of their own.
    Without ``probability`` it is a table of lists, ``user_id``, ``item_id`` and ``rank``, such as
    a recommender or a run writes: the item at each rank is shown with certainty.

    Args:
        path: The table, ``.csv``, ``.tsv`` or ``.parquet``.

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: The table has no ``item_id``, neither ``probability`` nor ``rank``, or a
            column that is no label of the users.
        MalformedLine: A probability is not between 0 and 1, or those of a user and position add up
            to more than 1.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"policy"})
    needs: ClassVar[frozenset[str]] = frozenset({"log"})
    libraries: ClassVar[tuple[str, ...]] = ("pyarrow",)

    path: InputFile

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedPolicy:
        """Read the table; nothing is trained."""
        frame = read_once(_read_policy, self.path)
        items = data.train.item_ids.find(frame["item_id"].to_numpy(dtype=object))
        if n := int((items < 0).sum()):
            warn(f"{self.path.name}: {n:,} rows are of items that the log never shows")
        groups, group_of = _group_users(frame.drop(columns=_OWN, errors="ignore"), data, self.path)
        positions = np.empty(0, dtype=np.int32)
        if "position" in frame:
            positions = frame["position"].to_numpy(np.int32)
        probabilities = frame["probability"].to_numpy(np.float64)
        return _FittedPolicy(Policy(items, positions, groups, probabilities, group_of))

    def check_files(self, datasets: Sequence[str]) -> None:
        """Validate the table."""
        read_once(_read_policy, self.path)


def _group_users(keys: pd.DataFrame, data: TrainingData, path: InputFile) -> tuple[Codes, Codes]:
    """Return the group of users of each row of a table, and of each user; -1 if it has none."""
    ids = data.train.user_ids
    if keys.columns.empty:
        return np.zeros(len(keys), dtype=np.int32), np.zeros(len(ids), dtype=np.int32)
    if "user_id" in keys:
        return ids.find(keys["user_id"].to_numpy(dtype=object)), np.arange(
            len(ids), dtype=np.int32
        )
    names = [] if data.users is None else data.users.names
    for name in keys:
        if name not in names:
            message = f"the column {name!r} is no label of the users"
            raise UnknownColumn(message, where=str(path), remedy=suggest(str(name), names))
    groups = pd.MultiIndex.from_frame(keys.astype(str))
    labels = data.users.frame[[*keys]].astype(str)  # type: ignore[union-attr]
    distinct = groups.unique()
    group_of = distinct.get_indexer(pd.MultiIndex.from_frame(labels)).astype(np.int32)
    return distinct.get_indexer(groups).astype(np.int32), group_of


def _read_policy(path: InputFile) -> pd.DataFrame:
    """Return ``item_id``, ``probability`` and, if they are there, positions and users."""
    table = read_file(path, _COLUMNS)
    frame: pd.DataFrame = table.cells.to_pandas()
    numbers = frame.columns.intersection(["position", "rank", "probability"])
    frame[numbers] = frame[numbers].apply(pd.to_numeric, errors="coerce")
    if "probability" not in frame:
        if "rank" not in frame:
            message = "there is neither a column probability nor a column rank"
            raise UnknownColumn(message, where=str(path), remedy="add the column probability")
        frame = frame[["user_id", "item_id", "rank"]].rename(columns={"rank": "position"})
        frame = frame.assign(probability=1.0)
    faulty = frame[frame.columns.intersection(_OWN)].isna().any(axis=1).to_numpy()
    faulty |= ~frame["probability"].between(0, 1 + _ROUNDING).to_numpy()
    if faulty.any():
        row = int(np.flatnonzero(faulty)[0])
        message = "a probability is not a number from 0 to 1, or a position is missing"
        raise MalformedLine(message, where=table.place(row), remedy="correct the row")
    keys = [name for name in frame if name not in {"item_id", "probability"}]
    sums = frame.groupby(keys)["probability"].sum() if keys else frame[["probability"]].sum()
    if (sums > 1 + _ROUNDING).any():
        message = f"probabilities add up to {sums.max():.6g} for one user and position"
        raise MalformedLine(message, where=str(path), remedy="they add up to 1 at most")
    if (sums < 1 - _ROUNDING).any():
        warn(f"{path.name}: probabilities add up to {sums.min():.3g} only; the rest is unknown")
    return frame
