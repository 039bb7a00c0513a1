"""Around the code of plug-ins: what it raises becomes a failure, what it returns is validated.

The only place that catches every exception: around a stage and around a plug-in's code.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from recbias.core.context import Failure
from recbias.core.dataset import AnyArray, Attributes, Codes, Dataset, Vocabulary
from recbias.core.errors import (
    CODE_FAULTS,
    BrokenContract,
    PluginError,
    RecbiasError,
    TooLittleMemory,
    Unwritable,
    UserError,
    describe_exception,
)
from recbias.core.evidence import Embeddings, Evidence
from recbias.core.machine import describe_shortage, is_shortage, raise_received
from recbias.core.measures import Measurement
from recbias.core.plugins import Candidates, State, Storable
from recbias.core.registry import locate_code, locate_failure
from recbias.core.text import make_storable

T = TypeVar("T")

_TRANSIENT_ERRORS = (MemoryError, OSError, TooLittleMemory)
"""Errors that may not occur again: of memory, disks, networks and processes."""

_LOWER_SIZES = "lower what makes it large: batch_size, negatives, embedding_size"
"""What to do if memory ran out and more cannot be had."""

_CARD_FAILED = "CUDA error: "
"""What torch's message begins with when a GPU failed or vanished."""


# ---- what plug-ins raise ----


def attempt(
    work: Callable[[], Any],
    *,
    on_lasting_failure: Callable[[], None] = lambda: None,
    passes_on: Callable[[BaseException], bool] = lambda _: False,
) -> tuple[Any, Failure | None]:
    """Call a function; return its result, or the reason for its failure.

    ``on_lasting_failure`` is called after an error that would occur again. Errors for which
    ``passes_on`` is true are raised, and so is ``Unwritable``: without a writable disk no later
    stage can be stored either.
    """
    try:
        return work(), None
    except Unwritable:
        raise
    except CODE_FAULTS as error:  # other models must still run
        raise_received()
        if passes_on(error):
            raise
        is_transient = isinstance(error, _TRANSIENT_ERRORS) or is_shortage(error)
        if not (is_transient or _is_of_card(error)):
            on_lasting_failure()
        return None, _describe_failure(error)


@contextmanager
def blame_plugin(call: str) -> Iterator[None]:
    """Turn an exception in ``call``, such as ``gives() of Mine``, into an error of the plug-in.

    Raises:
        BrokenContract: The code raised an error that is not one of recbias, or exited.
    """
    try:
        yield
    except (RecbiasError, MemoryError):
        raise
    except CODE_FAULTS as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = locate_failure(error) or f"{Path(frame.filename).name}:{frame.lineno}"
        message = f"{call} failed: {describe_exception(error)} ({place})"
        raise BrokenContract(message, remedy="fix its code") from error


def _is_of_card(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and _CARD_FAILED in str(error)


def _describe_failure(error: BaseException) -> Failure:
    """Return why a stage failed, in texts that can be written as UTF-8 and are not too long."""
    place = locate_failure(error)
    at_place = f" ({place})" if place else ""
    is_of_user, trace = isinstance(error, UserError), ""
    if isinstance(error, UserError):
        message = f"{error}{at_place if isinstance(error, PluginError) else ''}"
        remedy = error.remedy
    elif is_shortage(error):
        message, remedy = describe_shortage(error)
        is_of_user, remedy = True, f"{remedy}, or {_LOWER_SIZES}"
    elif _is_of_card(error):
        cause = str(error).partition(_CARD_FAILED)[2].partition("\n")[0]
        message, trace = f"the GPU failed: {cause}", traceback.format_exc()
        remedy = "run the same command again to resume, on another device if it fails again"
    else:
        is_of_recbias, trace = isinstance(error, RecbiasError), traceback.format_exc()
        message = f"{error if is_of_recbias else describe_exception(error)}{at_place}"
        is_of_author = place and not isinstance(error, (RecbiasError, *_TRANSIENT_ERRORS))
        remedy = "fix the code of the plug-in" if is_of_author else ""
    texts = map(make_storable, (message, remedy, trace))
    return Failure(next(texts), next(texts), is_of_user, next(texts))


# ---- what plug-ins return ----


def make_fault(method: Callable[..., Any], message: str, remedy: str) -> BrokenContract:
    """Return the error of a method of a plug-in, with its file and line."""
    place = f"{place}: " if (place := locate_code(method)) else ""
    name = getattr(method, "__qualname__", "the method")
    return BrokenContract(f"{place}{name}() {message}", remedy=remedy)


def call_for(returned: type[T], method: Callable[..., Any], *arguments: Any) -> T:
    """Call a method of a plug-in and return its result.

    Raises:
        BrokenContract: The result is of another type than ``returned``.
    """
    value = method(*arguments)
    if not isinstance(value, returned):
        message = f"returns {type(value).__name__}, not {returned.__name__}"
        raise make_fault(method, message, f"return a {returned.__name__}")
    return value


def call_load(load: Callable[..., Any], *arguments: Any) -> Dataset:
    """Return the dataset that a source loads, whose codes and tables fit its identifiers."""
    dataset = call_for(Dataset, load, *arguments)
    for message, remedy in _find_dataset_faults(dataset):
        raise make_fault(load, message, remedy)
    return dataset


def _find_dataset_faults(dataset: Dataset) -> Iterator[tuple[str, str]]:
    rows = dataset.interactions
    n_rows, encode = len(rows.values), "use Vocabulary.encode(column), which returns both"
    for kind, ids in (("users", rows.user_ids), ("items", rows.item_ids)):
        codes, table = getattr(rows, kind), getattr(dataset, kind)
        if not isinstance(ids, Vocabulary):
            found = type(ids).__name__
            yield f"returns identifiers of {kind} as {found}, not Vocabulary", encode
        elif codes.dtype.kind not in "iu" or codes.shape != (n_rows,):
            form = f"{codes.dtype}{[*codes.shape]}"
            yield f"returns codes of {kind} as {form} for {n_rows:,} interactions", encode
        elif codes.size and (codes.min() < 0 or codes.max() >= len(ids)):
            yield f"returns codes of {kind} outside 0 to {len(ids) - 1:,}", encode
        elif table is not None and not isinstance(table, Attributes):
            message = f"returns {kind} as {type(table).__name__}, not Attributes"
            yield message, "return Attributes(vocabulary, frame)"
        elif table is not None and len(table.frame) != len(ids):
            message = f"returns a table of {len(table.frame):,} rows for {len(ids):,} {kind}"
            yield message, "return a row for each, in the order of the vocabulary"


_OUTPUT_METHODS: Mapping[str, str] = {
    "lists": "recommend",
    "embeddings": "embeddings",
    "sentence_scores": "sentence_scores",
    "responses": "responses",
    "predictions": "named",
    "policy": "policy",
    "shown": "policy",
}
"""The method of a fitted model that returns each output."""


def require_outputs(fit: Callable[..., Any], fitted: object, outputs: Iterable[str]) -> None:
    """Refuse a fitted model without the method of an output that its model provides."""
    for output in sorted(outputs):
        method = _OUTPUT_METHODS[output]
        if not hasattr(fitted, method):
            message = f"returns {type(fitted).__name__}, which has no {method}(): {output}"
            remedy = f"return an object with {method}(), or remove {output} from provides"
            raise make_fault(fit, message, remedy)


def call_embeddings(fitted: Any, n_users: int, n_items: int) -> Embeddings:
    """Return the embeddings of a fitted model: a row for each user, and for each item."""
    embeddings = call_for(Embeddings, fitted.embeddings)
    for kind, n in (("users", n_users), ("items", n_items)):
        vectors = getattr(embeddings, kind)
        if vectors is not None and (np.ndim(vectors) != 2 or len(vectors) != n):
            message = f"returns {kind} of shape {np.shape(vectors)} for {n:,} {kind}"
            remedy = f"return a row for each of the {kind} in data.train, NaN without an embedding"
            raise make_fault(fitted.embeddings, message, remedy)
    return embeddings


def call_state(fitted: Any, model: str) -> State:
    """Return the state of a fitted model, if it maps names to arrays of numbers or text."""
    if not isinstance(fitted, Storable):
        message = f"{model} has restore() but its fitted model no state()"
    elif not isinstance(state := fitted.state(), Mapping):
        message = f"state() of {model} returns {type(state).__name__}, not a dict of arrays"
    elif wrong := [
        name
        for name, array in state.items()
        if not isinstance(name, str) or np.asarray(array).dtype.hasobject
    ]:
        message = f"state() of {model} has {wrong[0]!r}, which is no name of an array of numbers"
    else:
        return {name: np.asarray(array) for name, array in state.items()}
    raise BrokenContract(message, remedy="give the fitted model a state() that returns arrays")


def call_measure(measure: Callable[..., Any], evidence: Evidence) -> tuple[Measurement, ...]:
    """Return the measurements of a metric: a number for each unit, once for a group and target."""
    value = measure(evidence)
    rows = tuple(value) if isinstance(value, Iterable) else (value,)
    wrong = [row for row in rows if not isinstance(row, Measurement)]
    if wrong or not isinstance(value, Iterable):
        message = f"returns {type([*wrong, value][0]).__name__}, not a list of Measurement"
        remedy = "return [evidence.measure_queries(values)] or [Measurement(...)]"
        raise make_fault(measure, message, remedy)
    for message in _find_measurement_faults(rows, is_foreign=bool(locate_code(measure))):
        remedy = "return one number for each unit, NaN if undefined, once for a group and target"
        raise make_fault(measure, f"returns {message}", remedy)
    return rows


def _find_measurement_faults(rows: Sequence[Measurement], *, is_foreign: bool) -> Iterator[str]:
    if not rows and is_foreign:
        yield "an empty list, without a measurement"
    for place, n in Counter((row.group, row.target) for row in rows).items():
        if n > 1:
            name = " and ".join(filter(None, place)) or "no group or target"
            yield f"{n} measurements of {name}"
    for row in rows:
        n_units = 0 if row.units is None else len(row.units.ids)
        values = np.asarray(row.value if row.units is None else row.units.values)
        if row.units is not None and values.shape != (n_units,):
            yield f"values of shape {values.shape} for {n_units:,} units"
        elif values.dtype.kind not in ("fiu" if row.units is None else "f"):
            yield f"values of type {values.dtype}, not float64"
        elif is_foreign and np.isinf(values).any():
            yield f"{np.count_nonzero(np.isinf(values)):,} infinite values"


def call_label(
    label: Callable[..., Any], kinds: Sequence[str], items: Attributes, *arguments: Any
) -> dict[str, AnyArray]:
    """Return the columns of a detector: one of numbers for each kind, besides graded ones."""
    columns = call_for(Mapping, label, items, *arguments)  # type: ignore[type-abstract]
    allowed, n = {*kinds, *(f"{kind}_score" for kind in kinds)}, len(items.ids)
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    faults = [f"columns with {name!r} of no kind" for name in arrays.keys() - allowed]
    faults += [f"columns with {name!r} missing" for name in set(kinds) - arrays.keys()]
    faults += [
        f"{name!r} as {array.dtype}{[*array.shape]}, not a number for each of {n:,} items"
        for name, array in arrays.items()
        if array.shape != (n,) or array.dtype.kind not in "fiub"
    ]
    if faults:
        remedy = "return a column of 0, 1 or NaN for each of its kinds: " + ", ".join(kinds)
        raise make_fault(label, f"returns {faults[0]}", remedy)
    return arrays


def call_rerank(rerank: Callable[..., Any], candidates: Candidates, k: int) -> Codes:
    """Return the positions that a re-ranker selects: different candidates, and -1 at the end."""
    positions = call_for(np.ndarray, rerank, candidates, k)
    shape, n, problems = (len(candidates.lists), k), candidates.lists.k, list[str]()
    if positions.shape != shape or positions.dtype.kind != "i":
        problems = [f"positions {positions.dtype}{[*positions.shape]}, not int32{[*shape]}"]
    elif positions.size:
        ordered, is_empty = np.sort(positions, axis=1), positions == -1
        inside = positions.clip(0, n - 1)
        wrong = {
            f"positions outside -1 to {n - 1}": (positions != inside) & ~is_empty,
            "a position after an empty one": is_empty[:, :-1] & ~is_empty[:, 1:],
            "a position twice in a row": (np.diff(ordered) == 0) & (ordered[:, 1:] >= 0),
            "an empty position of the candidates": ~is_empty
            & ~np.take_along_axis(candidates.filled, inside, axis=1),
        }
        problems = [problem for problem, rows in wrong.items() if rows.any()]
    if problems:
        remedy = "return the positions of the selected candidates, best first, and -1 at the end"
        raise make_fault(rerank, f"returns {problems[0]}", remedy)
    return positions
