"""The peak memory of each stage before it runs, by the sizes of its data and what models say.

The constants were fitted to the peaks of ``benchmarks/growth.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

from recbias.core.machine.expected import ModelMemory, PlansMemory, Sizes
from recbias.core.packages import list_libraries
from recbias.runner.answer_sizes import plan_reading, plan_sentences
from recbias.runner.library_memory import sum_libraries
from recbias.runner.stage import Stage

MODEL_KINDS = frozenset({"fit", "answer", "trial", "baseline", "label"})
"""Kinds of stage whose memory depends on the model, or on the detector."""

GAPS, PER_GAP = 25 * 2**20, 10.0
"""Bytes at most of freed memory between arrays, and for each interaction until then."""

PER_FILE_BYTE = 5.0
"""Bytes in memory per byte of a file of which nothing else is known, while it is read."""

PER_ID = 220.0
"""Bytes of a user or an item: its identifier, and its row in the tables of attributes."""

READ, SPLIT, HELD = 36.0, 49.0, 36.0
"""Bytes of an interaction while it is read and filtered; while the dataset is split; and of the
dataset with its split and their matrices."""

MEASURED, COMPARED = 16.0, 60.0
"""Bytes of an interaction of the users that are asked, beside these, while metrics of lists are
computed, and while metrics that read the training interactions compare their histories."""

COUNTED = 3.0
"""Bytes of each interaction while any metric is computed."""

READ_TIME, SPLIT_TIME, HELD_TIME = 28.0, 16.0, 12.0
"""Bytes that an interaction with a time needs more."""

PER_TEXT, READ_CHARACTER = 66.0, 2.0
"""Bytes of a review and its codes, and of each character while it is read; then one."""

BLOCKS = 80 * 2**20
"""Bytes of the blocks of scores that are ranked at once, at most."""

PER_SCORE = 6.0
"""Bytes of a score while its block is ranked."""

CARD = 700 * 2**20
"""Bytes of a process on a card besides tensors: its context, and the libraries of CUDA."""

COMPILED_SCORES = 5e7
"""The number of scores from which on compiled loops rank them."""


@dataclass
class PeakPlanner:
    """Plans the peaks of stages in their order, in one process.

    Args:
        libraries: What the stages so far have loaded, which stays in memory.
        answered: The addresses of the answers so far, whose models stay until their metrics are
            computed; those of stored answers are not read again.
    """

    libraries: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    _states: dict[tuple[int, ...], tuple[Sizes, float]] = field(default_factory=dict)

    def plan(self, stage: Stage, sizes: Sizes) -> float | None:
        """Return the bytes of the process at the peak of a stage; None if they cannot be told."""
        if stage.kind in MODEL_KINDS:
            memory = _find_memory(stage, sizes) if "interactions" in sizes else None
            self.libraries.update(_list_libraries(stage, sizes, memory))
            self.answered.add(stage.digest)
        elif stage.kind == "measure":
            self.libraries.update(list_libraries(getattr(stage.work, "metric", None)))
        data = _plan_data(stage, sizes, self._find_state(stage, sizes))
        return None if data is None else self.base + data

    def _find_state(self, stage: Stage, sizes: Sizes) -> float:
        """Return the bytes of the models whose answers a metric reads, found once for each."""
        if stage.kind != "measure" or "interactions" not in sizes:
            return 0.0
        key = (id(sizes), *map(id, stage.inputs))
        if key not in self._states:
            self._states[key] = sizes, self._sum_states(stage, sizes)
        return self._states[key][1]

    @property
    def base(self) -> float:
        """The bytes of the process without data."""
        return sum_libraries(self.libraries)

    def find_share(self, stage: Stage, sizes: Sizes, limit: float) -> float:
        """Return the share of the users, items and interactions with which a stage would fit."""
        low, high = 0.0, 1.0
        for _ in range(20):
            share = (low + high) / 2
            part = {name: int(n * share) for name, n in sizes.items()}
            data = _plan_data(stage, part, self._sum_states(stage, part))
            low, high = (share, high) if self.base + (data or 0) <= limit else (low, share)
        return low

    def _sum_states(self, stage: Stage, sizes: Sizes) -> float:
        """Return the bytes of the models whose answers a metric reads."""
        if stage.kind != "measure" or "interactions" not in sizes:
            return 0.0
        answers = [source for source in stage.inputs if source.digest in self.answered]
        memories = (_find_memory(source, sizes) for source in answers)
        return sum(memory.state for memory in memories if memory is not None)


def plan_card(stage: Stage, sizes: Sizes) -> float | None:
    """Return the bytes on a card at the peak of a stage; None if its model does not say.

    What the model says of its memory counts as if all of it were on the card.
    """
    memory = _find_memory(stage, sizes) if "interactions" in sizes else None
    return None if memory is None else CARD + _plan_model(stage, sizes, memory)


def _plan_data(stage: Stage, sizes: Sizes, state: float) -> float | None:
    """Return the bytes at the peak of a stage beside those of the process.

    ``state`` are the bytes of the models whose answers a metric reads.
    """
    if stage.kind == "dataset":
        return _plan_load(sizes)
    if "interactions" not in sizes:
        return None
    rows, ids = sizes["interactions"], _plan_ids(sizes, 1.0)
    times = sizes.get("times", 0)
    sentences = plan_sentences(stage.kind, sizes)
    held = ids + HELD * rows + HELD_TIME * times + sentences
    if stage.kind in MODEL_KINDS:
        memory = _find_memory(stage, sizes)
        return None if memory is None else held + _plan_model(stage, sizes, memory)
    if stage.kind == "measure":
        answers = plan_reading(getattr(stage.work, "metric", None), sizes)
        return None if answers is None else held + _plan_measures(stage, sizes) + answers + state
    split = ids + SPLIT * rows + SPLIT_TIME * times + sentences
    return {"split": split, "queries": held}.get(stage.kind)


def _plan_measures(stage: Stage, sizes: Sizes) -> float:
    """Return the peak of a metric beside the data."""
    reads_histories = "train" in getattr(getattr(stage.work, "metric", None), "needs", ())
    share = min(1.0, sizes.get("queries", sizes["users"]) / max(sizes["users"], 1))
    of_asked = COMPARED if reads_histories else MEASURED
    return (COUNTED + of_asked * share) * sizes["interactions"]


def _plan_model(stage: Stage, sizes: Sizes, memory: ModelMemory) -> float:
    """Return the peak of the training or the lists of a model, or of both, beside the data."""
    if stage.kind in {"fit", "label"}:
        return memory.fit
    n_scores = _count_scores(sizes)
    in_tiles = memory.ranking == "tiles" and n_scores >= COMPILED_SCORES
    in_blocks = memory.ranking != "none" and not in_tiles
    lists = memory.state + memory.lists + in_blocks * min(BLOCKS, PER_SCORE * n_scores)
    return max(memory.fit, lists) if _trains(stage) else lists


def _trains(stage: Stage) -> bool:
    """Return whether a stage trains its model, rather than reads it from the store."""
    return stage.kind in {"fit", "trial"} or all(source.kind != "fit" for source in stage.inputs)


def _list_libraries(stage: Stage, sizes: Sizes, memory: ModelMemory | None) -> set[str]:
    """Return the libraries that a stage of a model loads."""
    model = get_model(stage)
    reads_only = memory is not None and not memory.fit
    is_trained = _trains(stage) and not reads_only
    libraries = set(getattr(model, "libraries", ())) if is_trained else set()
    if stage.kind == "label":
        return {*list_libraries(model), *(memory.lists_with if memory is not None else ())}
    if memory is None:
        return libraries
    is_compiled = memory.compiled and _trains(stage)
    if stage.kind != "fit":
        libraries.update(memory.lists_with)
        ranks = memory.ranking != "none" and _count_scores(sizes) >= COMPILED_SCORES
        is_compiled = is_compiled or ranks
    return libraries | ({"numba"} if is_compiled else set())


def _count_scores(sizes: Sizes) -> float:
    """Return the number of scores of all queries; every user is one where they are not known."""
    return float(sizes.get("queries", sizes.get("users", 0))) * sizes.get("items", 0)


def _plan_load(sizes: Sizes) -> float | None:
    if "interactions" not in sizes:
        return PER_FILE_BYTE * sizes["bytes"] if "bytes" in sizes else None
    rows, ids = sizes["interactions"], _plan_ids(sizes, READ_CHARACTER)
    rows_read = READ * rows + READ_TIME * sizes.get("times", 0)
    return ids + rows_read + plan_sentences("dataset", sizes)


def _plan_ids(sizes: Sizes, per_character: float) -> float:
    """Return the bytes of users, items and reviews, and of gaps."""
    characters = sizes.get("characters", 0) + sizes.get("item_characters", 0)
    texts = PER_TEXT * sizes.get("reviews", 0) + per_character * characters
    gaps = min(GAPS, PER_GAP * sizes["interactions"])
    return PER_ID * (sizes["users"] + sizes["items"]) + texts + gaps


def _unwrap(work: Any) -> Any:
    """Return the work of a stage without the search for its settings."""
    return getattr(work, "work", work)


def get_model(stage: Stage) -> Any:
    """Return the model or the detector of a stage, if it has one."""
    return getattr(_unwrap(stage.work), _name_model(stage), None)


def replace_model(stage: Stage, model: Any) -> Stage:
    """Return a stage with another model or detector, to be planned."""
    work = replace(_unwrap(stage.work), **{_name_model(stage): model})
    return replace(stage, work=work)


def _name_model(stage: Stage) -> str:
    return "detector" if stage.kind == "label" else "model"


def _find_memory(stage: Stage, sizes: Sizes) -> ModelMemory | None:
    """Return what the model of a stage says; None if it has none, or it says nothing."""
    model = get_model(stage) if stage.kind in MODEL_KINDS else None
    if not hasattr(model, "plan_memory"):  # ``isinstance`` of a protocol takes ten times as long
        return None
    return cast("PlansMemory", model).plan_memory(sizes)
