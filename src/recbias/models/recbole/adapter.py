"""Adapter of RecBole: training rows to its process, and the lists that come back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import BrokenContract, Contradiction, OutOfRange
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import Output, State
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import record_fact
from recbias.models.ranking.score_blocks import rank_users_with_history
from recbias.models.recbole.exchange import Call
from recbias.models.recbole.interpreter import find_interpreter, require_interpreter
from recbias.models.recbole.worker.requests import LISTS, QUERIES, ROWS, STATE

_WORD = re.compile(r"[\w.+-]*", re.ASCII)

SEED = "seed"
"""The name of the seed among the arrays of a learned state."""


@dataclass(frozen=True, kw_only=True)
class RecBole:
    """Train a general or sequential model of RecBole, in a process of its own.

    ``recbole/BPR`` is ``{name: recbole, model: BPR}``; the name after the slash is RecBole's. The
    process trains on the training rows for the given number of epochs, without early stopping:
    validation and test rows are not given to it. To recommend, another process takes the stored
    parameters and ranks the items that have a training row and that the user does not have. A user
    without training rows has an empty list. The processes use one thread, a seed of the run, and a
    CPU unless ``config: {use_gpu: true}``.

    RecBole needs old versions of some packages. It may be installed for another Python, which
    ``RECBIAS_RECBOLE_PYTHON`` names: ``/path/to/venv/bin/python``. The versions of RecBole and of
    what it computes with are part of the address of a result.

    Sequential models read the items of a user in the order of time; rows with equal times are in
    the order of the file. Of a general model, a repeated pair counts once. Models that need the
    attributes of users or items are refused.

    Args:
        model: The name of the model in RecBole: ``BPR``, ``LightGCN``, ``SASRec``.
        epochs: Number of passes over the training rows.
        embedding_size: Size of the vectors, by whichever name the model has for it; null for the
            default of RecBole.
        config: Other settings of the training and of the model by RecBole's names:
            ``{learning_rate: 0.002, train_batch_size: 4096}``.
        timeout: Seconds after which a process is ended.

    Raises:
        PluginError: RecBole has no such model or setting, or the process fails or takes too long.
        MissingExtra: RecBole is not installed.
        MissingFile: The Python that is named does not exist.
        Contradiction: A setting is given twice.
        OutOfRange: A text in ``config`` is not a word: RecBole would run it as code.

    Source:
        Zhao et al., "RecBole: Towards a Unified, Comprehensive and Efficient Framework for
        Recommendation Algorithms", CIKM 2021.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ()
    after_fit: ClassVar[frozenset[str]] = frozenset({"timeout"})

    model: str
    epochs: Annotated[int, Gt(0)] = 50
    embedding_size: Annotated[int, Gt(0)] | None = None
    config: dict[str, Any] = field(default_factory=dict)
    timeout: Annotated[float, Gt(0)] = 86_400

    def __post_init__(self) -> None:
        for key, value in {"model": self.model, **self.config}.items():
            if isinstance(value, str) and not _WORD.fullmatch(value):
                message = f"{key} must be a word of letters, digits, '.', '_', '+' and '-'"
                where = "model" if key == "model" else "config"
                raise OutOfRange(message, where=where, remedy=f"correct {key}")
        for name in ("epochs", "embedding_size"):
            if name in self.config and getattr(self, name) is not None:
                message = f"{name} is given both in config and as a setting"
                raise Contradiction(message, where="config", remedy=f"remove {name} from config")

    def libraries_now(self) -> tuple[str, ...]:
        """Return RecBole if it must be installed for this Python, because no other is named."""
        return () if find_interpreter() else ("recbole",)

    def model_files(self) -> Sequence[Path]:
        """Return the files with the versions of RecBole and of what it computes with."""
        interpreter = find_interpreter()
        return interpreter.metadata if interpreter else ()

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedRecBole:
        """Train in a process, and return the parameters that it wrote."""
        seed = np.array(rng.integers(2**31))
        inputs = {ROWS: order_rows(data.train)}
        state = self.call("fit", data, int(seed), inputs, STATE, epochs=self.epochs)
        return FittedRecBole(self, {**state, SEED: seed})

    def restore(self, state: State) -> FittedRecBole:
        """Return the fitted recommender of a stored state."""
        return FittedRecBole(self, state)

    def call(  # noqa: PLR0913
        self,
        task: str,
        data: TrainingData,
        seed: int,
        inputs: Mapping[str, Mapping[str, AnyArray]],
        result: str,
        *,
        k: int = 0,
        epochs: int = 0,
    ) -> dict[str, AnyArray]:
        """Return the arrays that a process wrote; the versions that it used become facts.

        Args:
            task: ``fit`` or ``rank``.
            data: The training data.
            seed: The seed of RecBole.
            inputs: The arrays of each file that the process reads.
            result: The file that it writes.
            k: Length of a list.
            epochs: The number of epochs whose progress is reported.
        """
        name = f"recbole/{self.model}"
        request = {
            "task": task,
            "model": self.model,
            "epochs": self.epochs,
            "embedding_size": self.embedding_size,
            "config": self.config,
            "seed": seed,
            "has_times": data.train.times is not None,
            "k": k,
        }
        process = Call(name, request, inputs, result, epochs, self.timeout)
        arrays, facts = process.run(require_interpreter(name))
        for fact, version in facts.items():
            record_fact(fact, version)
        return arrays


@dataclass(frozen=True, eq=False)
class FittedRecBole:
    """A trained model of RecBole: its parameters, from which a process ranks.

    Args:
        settings: The model and its settings.
        arrays: The parameters by name, and the seed.
    """

    settings: RecBole
    arrays: State

    def state(self) -> State:
        """Return the arrays."""
        return self.arrays

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        return rank_users_with_history(lambda users: self._rank(users, k, data), queries, k, data)

    def _rank(self, users: Codes, k: int, data: TrainingData) -> RankedLists:
        """Return the lists of users with training rows, ``(b, k)``."""
        if not users.size:
            return RankedLists(np.empty((0, k), np.int32), np.empty((0, k), np.float32))
        parameters = {name: array for name, array in self.arrays.items() if name != SEED}
        distinct, rows = np.unique(users, return_inverse=True)
        inputs = {
            ROWS: order_rows(data.train),
            STATE: parameters,
            QUERIES: {"users": distinct.astype(np.int64)},
        }
        lists = self.settings.call("rank", data, int(self.arrays[SEED]), inputs, LISTS, k=k)
        items, scores = lists.get("items"), lists.get("scores")
        if items is None or scores is None or not _are_lists(items, scores, distinct.size, k):
            name = f"recbole/{self.settings.model}"
            message = f"the process of {name} returned no lists of {k} for {distinct.size:,} users"
            raise BrokenContract(message, remedy="use the RecBole of the package index")
        return RankedLists(items[rows].astype(np.int32), scores[rows].astype(np.float32))


def order_rows(train: Interactions) -> dict[str, AnyArray]:
    """Return the training rows by user and time, with the place of each in its user's history."""
    keys = (train.users,) if train.times is None else (train.times, train.users)
    order = np.lexsort(keys)
    users = train.users[order].astype(np.int64)
    starts = np.cumsum(train.user_counts()) - train.user_counts()
    ranks = np.arange(users.size) - starts[users]
    return {"users": users, "items": train.items[order].astype(np.int64), "ranks": ranks}


def _are_lists(items: AnyArray, scores: AnyArray, n: int, k: int) -> bool:
    """Return whether arrays have the form of lists: whole numbers, and as many numbers."""
    kinds = (items.dtype.kind, scores.dtype.kind)
    return items.shape == scores.shape == (n, k) and kinds == ("i", "f")
