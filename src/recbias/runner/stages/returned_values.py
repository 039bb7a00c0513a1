"""Validation of what the methods of plug-ins return, with the place of the method in a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.split import TrainingData
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import BrokenContract
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Embeddings
from recbias.core.protocols import State, Storable
from recbias.core.registry import locate_code

T = TypeVar("T")

OUTPUT_METHODS: Mapping[str, str] = {
    "lists": "recommend",
    "embeddings": "embeddings",
    "sentence_scores": "sentence_scores",
    "responses": "responses",
    "predictions": "named",
}
"""The method of a fitted model that returns each output."""


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


def require_dataset(load: Callable[..., Any], *arguments: Any) -> Dataset:
    """Return the dataset that a source loads.

    Raises:
        BrokenContract: It is something else, has codes outside its vocabularies, columns of
            different lengths, or a table without a row for each user or item.
    """
    dataset = call_for(Dataset, load, *arguments)
    rows = dataset.interactions
    for kind, ids in (("users", rows.user_ids), ("items", rows.item_ids)):
        codes, table = getattr(rows, kind), getattr(dataset, kind)
        if not isinstance(ids, Vocabulary):
            message = f"returns identifiers of {kind} as {type(ids).__name__}, not Vocabulary"
            raise make_fault(load, message, "use Vocabulary.encode(column), which returns both")
        if codes.dtype.kind not in "iu" or codes.shape != (len(rows.values),):
            form = f"{codes.dtype}{[*codes.shape]}"
            message = f"returns codes of {kind} as {form} for {len(rows.values):,} interactions"
            raise make_fault(load, message, "return a whole number for each interaction")
        if table is not None and not isinstance(table, Attributes):
            message = f"returns {kind} as {type(table).__name__}, not Attributes"
            raise make_fault(load, message, "return Attributes(vocabulary, frame)")
        if table is not None and len(table.frame) != len(ids):
            message = f"returns a table of {len(table.frame):,} rows for {len(ids):,} {kind}"
            raise make_fault(
                load, message, "return a row for each, in the order of the vocabulary"
            )
        n = len(ids)
        if codes.size and (codes.min() < 0 or codes.max() >= n):
            message = f"returns codes of {kind} outside 0 to {n - 1:,}"
            raise make_fault(load, message, "use Vocabulary.encode(column), which returns both")
    return dataset


def make_fault(method: Callable[..., Any], message: str, remedy: str) -> BrokenContract:
    """Return the error of a method of a plug-in, with its file and line."""
    place = f"{place}: " if (place := locate_code(method)) else ""
    name = getattr(method, "__qualname__", "the method")
    return BrokenContract(f"{place}{name}() {message}", remedy=remedy)


def require_outputs(fit: Callable[..., Any], fitted: object, outputs: Iterable[str]) -> None:
    """Check that a fitted model has the method of each output that its model provides.

    Raises:
        BrokenContract: It lacks one.
    """
    for output in sorted(outputs):
        method = OUTPUT_METHODS[output]
        if not hasattr(fitted, method):
            message = f"returns {type(fitted).__name__}, which has no {method}(): {output}"
            remedy = f"return an object with {method}(), or remove {output} from provides"
            raise make_fault(fit, message, remedy)


def require_embeddings(fitted: Any, data: TrainingData) -> Embeddings:
    """Return the embeddings of a fitted model: a row for each user, and for each item.

    Raises:
        BrokenContract: They have another shape.
    """
    embeddings = call_for(Embeddings, fitted.embeddings)
    sizes = {"users": data.train.n_users, "items": data.train.n_items}
    for kind, n in sizes.items():
        vectors = getattr(embeddings, kind)
        if vectors is not None and (np.ndim(vectors) != 2 or len(vectors) != n):
            message = f"returns {kind} of shape {np.shape(vectors)} for {n:,} {kind}"
            remedy = f"return a row for each of the {kind} in data.train, NaN without an embedding"
            raise make_fault(fitted.embeddings, message, remedy)
    return embeddings


def require_measurements(measure: Callable[..., Any], value: Any) -> tuple[Measurement, ...]:
    """Return the measurements that a metric returned.

    Raises:
        BrokenContract: They are something else, none, or two of the same group and target; their
            values are not a number for each unit, or of a metric of another author infinite.
    """
    rows = tuple(value) if isinstance(value, Iterable) else (value,)
    wrong = [row for row in rows if not isinstance(row, Measurement)]
    if wrong or not isinstance(value, Iterable):
        message = f"returns {type([*wrong, value][0]).__name__}, not a list of Measurement"
        remedy = "return [evidence.measure_queries(values)] or [Measurement(...)]"
        raise make_fault(measure, message, remedy)
    for message in _find_measurement_faults(rows, is_foreign=bool(locate_code(measure))):
        remedy = "return one number for each unit, NaN if undefined, once for a group and target"
        raise make_fault(measure, message, remedy)
    return rows


def _find_measurement_faults(rows: Sequence[Measurement], *, is_foreign: bool) -> Iterator[str]:
    if not rows and is_foreign:
        yield "returns an empty list, without a measurement"
    places = Counter((row.group, row.target) for row in rows)
    if repeated := [place for place, n in places.items() if n > 1]:
        place = " and ".join(filter(None, repeated[0])) or "no group or target"
        yield f"returns {places[repeated[0]]} measurements of {place}"
    for row in rows:
        n_units = 0 if row.units is None else len(row.units.ids)
        values = np.asarray(row.value if row.units is None else row.units.values)
        if row.units is not None and values.shape != (n_units,):
            yield f"returns values of shape {values.shape} for {n_units:,} units"
        elif values.dtype.kind not in ("fiu" if row.units is None else "f"):
            yield f"returns values of type {values.dtype}, not float64"
        elif is_foreign and (n := np.count_nonzero(np.isinf(values))):
            yield f"returns {n:,} infinite values"


def require_labels(
    label: Callable[..., Any], kinds: Sequence[str], items: Attributes, *arguments: Any
) -> dict[str, AnyArray]:
    """Return the columns of a detector: one of numbers for each kind, besides graded ones.

    Raises:
        BrokenContract: It lacks a column, has others, or one does not have a number for each item.
    """
    columns = call_for(Mapping, label, items, *arguments)  # type: ignore[type-abstract]
    allowed = {*kinds, *(f"{kind}_score" for kind in kinds)}
    remedy = "return a column of 0, 1 or NaN for each of its kinds: " + ", ".join(kinds)
    for name in [*columns.keys() - allowed, *set(kinds) - columns.keys()]:
        violation = "of no kind" if name in columns else "missing"
        raise make_fault(label, f"returns columns with {name!r} {violation}", remedy)
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    for name, array in arrays.items():
        if array.shape != (len(items.ids),) or array.dtype.kind not in "fiub":
            form = f"{array.dtype}{[*array.shape]}"
            message = (
                f"returns {name!r} as {form}, not a number for each of {len(items.ids):,} items"
            )
            raise make_fault(label, message, remedy)
    return arrays


def require_state(fitted: object, model: str) -> State:
    """Return the state of a fitted model, if it maps names to arrays of numbers or text.

    Raises:
        BrokenContract: It is something else, or the fitted model has none.
    """
    if not isinstance(fitted, Storable):
        raise _make_state_error(f"{model} has restore() but its fitted model no state()")
    state = fitted.state()
    if not isinstance(state, Mapping):
        returned = type(state).__name__
        raise _make_state_error(f"state() of {model} returns {returned}, not a dict of arrays")
    for name, array in state.items():
        if not isinstance(name, str):
            raise _make_state_error(f"state() of {model} has a name that is not text: {name!r}")
        if np.asarray(array).dtype.hasobject:
            raise _make_state_error(f"state() of {model} has Python objects in {name!r}")
    return state


def _make_state_error(message: str) -> BrokenContract:
    return BrokenContract(message, remedy="give the fitted model a state() that returns arrays")
