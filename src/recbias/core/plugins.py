"""What plug-ins are: a protocol for each kind and for each optional ability; no base is needed.

A plug-in is a frozen dataclass, whose fields are its settings. They, and the content of the files
that they name (``InputFile``), are part of the content address of its results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeAlias,
    TypeGuard,
    TypeVar,
    get_args,
    runtime_checkable,
)

import numpy as np
import pandas as pd

from recbias.core.dataset import (
    AnyArray,
    Attributes,
    BoolArray,
    Codes,
    Dataset,
    FloatArray,
    Ids,
    Matrix,
    Queries,
    Split,
    TrainingData,
)
from recbias.core.evidence import REMEDIES, Evidence, RankedLists
from recbias.core.measures import Bounds, Direction, Measurement

BASELINES = frozenset({"Random", "MostPop"})
"""The names of the models that are baselines unless the spec says otherwise."""


class _LabelsTexts(Protocol):
    """A detector whose labels follow from values of a text of each item.

    The values are stored by the text, so that other seeds, filters and datasets with the same
    text evaluate it no more. ``after_evaluation`` names the settings that do not affect them.
    """

    libraries: ClassVar[tuple[str, ...]]
    after_evaluation: ClassVar[frozenset[str]]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of label."""

    def texts(self, items: Attributes) -> Ids:
        """Return the text of each item, None where it is missing, ``object[n_items]``."""

    def evaluate(self, texts: Sequence[str]) -> Iterator[FloatArray]:
        """Yield the values of consecutive texts, a row for each: ``float64[m, c]``.

        A text has the same values in any order and company.
        """

    def label_values(self, values: FloatArray) -> Mapping[str, FloatArray]:
        """Return the columns of ``label`` for values of all items; NaN where there is no text."""


def evaluates_texts(detector: object) -> TypeGuard[_LabelsTexts]:
    """Return whether the labels of a detector follow from values of a text of each item.

    >>> evaluates_texts(object())
    False
    """
    is_by_settings = getattr(detector, "evaluates_texts", None)
    has_values = hasattr(detector, "label_values")
    return has_values and (is_by_settings is None or is_by_settings())


class StoredValues(Protocol):
    """Values of texts by the digest of the text."""

    def find(self, digest: str) -> FloatArray | None:
        """Return the values of a text, None if there are none."""

    def append(self, digests: Sequence[str], values: FloatArray) -> None:
        """Store the values of texts."""


def label_texts(
    detector: _LabelsTexts, stored: StoredValues | None, items: Attributes
) -> Mapping[str, FloatArray]:
    """Return the columns of a detector; each distinct text that is not stored is evaluated once.

    Args:
        detector: The detector.
        stored: The values of texts that were evaluated before; None to store none.
        items: The items.
    """
    codes, distinct = pd.factorize(detector.texts(items))
    texts = [str(text) for text in distinct]
    digests = [sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in texts]
    rows = [None if stored is None else stored.find(digest) for digest in digests]
    missing = [at for at, row in enumerate(rows) if row is None]
    start = 0
    for block in detector.evaluate([texts[at] for at in missing]):
        places = missing[start : start + len(block)]
        if stored is not None:
            stored.append([digests[at] for at in places], block)
        for at, row in zip(places, block, strict=True):
            rows[at] = row
        start += len(block)
    return detector.label_values(_spread(rows, codes))


def _spread(rows: Sequence[FloatArray | None], codes: AnyArray) -> FloatArray:
    """Return the values of each item: NaN for code -1, ``float64[n, c]``."""
    present = [row for row in rows if row is not None]
    table = np.full((len(rows) + 1, present[0].size if present else 0), np.nan)
    if present:
        table[:-1] = present
    return np.asarray(table[codes])


EXECUTION = "changes how a result is computed: speed, memory, waiting; not what it measures"
"""The mark of a setting that need not change any result: ``Annotated[int, EXECUTION]``."""


@dataclass(frozen=True, init=False)
class OnlyWith:
    """The mark of a setting that has an effect only with some values of another setting.

    A spec that gives it another value than its default is refused with other values.

    Args:
        setting: The key of the other setting.
        values: Its values, one of which a list must hold; if there are none, any but null, false,
            0 and empty ones.

    >>> OnlyWith("similarity", "asymmetric").is_met("cosine"), OnlyWith("attribute").is_met("a")
    (False, True)
    """

    setting: str
    values: tuple[object, ...]

    def __init__(self, setting: str, *values: object) -> None:
        """Mark with the other setting and its values."""
        object.__setattr__(self, "setting", setting)
        object.__setattr__(self, "values", values)

    def is_met(self, value: object) -> bool:
        """Return whether the setting has an effect with a value of the other one."""
        if not self.values:
            return bool(value)
        chosen = value if isinstance(value, (list, tuple)) else (value,)
        return any(each in self.values for each in chosen)


@dataclass(frozen=True)
class OnlyOn:
    """The mark of a setting that has an effect only where there is some evidence.

    A spec without this evidence that gives it another value is refused.

    Args:
        evidence: The evidence: ``validation``.
    """

    evidence: str


def is_changed(plugin: object, setting: str) -> bool:
    """Return whether a setting of a plug-in differs from its default."""
    return bool(getattr(plugin, setting) != getattr(type(plugin), setting, None))


Settings = TypeVar("Settings")


def select_settings(model: Any, kind: type[Settings], **others: Any) -> Settings:
    """Return a dataclass of the settings of a model that have the names of its fields."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: vars(model)[name] for name in names & vars(model).keys()}, **others)


# fmt: off
Device: TypeAlias = Annotated[
    Literal[
        "auto", "cpu", "cuda", "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4", "cuda:5",
        "cuda:6", "cuda:7", "mps",
    ],
    EXECUTION,
]
# fmt: on
"""The device of tensors; ``auto`` is the first available of CUDA, MPS and CPU."""


@runtime_checkable
class UsesDevice(Protocol):
    """A plug-in, or a setting of one, that computes on the device that its user selects."""

    def choose_device(self, default: Device) -> Mapping[str, str]:
        """Return the settings ``device`` and ``precision`` as they are on this machine.

        ``default`` is the device of the spec, for a setting that has none. Empty if it computes
        elsewhere, as a server does. MissingExtra if this machine does not have the device.
        """


def is_cuda(device: str) -> bool:
    """Return whether a device is a GPU of CUDA, with or without its number."""
    return device.partition(":")[0] == "cuda"


def omit_device_numbers(settings: Any) -> Any:
    """Return plain settings with ``cuda`` for ``cuda:1``: GPUs of one machine compute the same.

    >>> omit_device_numbers({"llm": {"device": "cuda:1"}, "epochs": 3})
    {'llm': {'device': 'cuda'}, 'epochs': 3}
    """
    if not isinstance(settings, dict):
        return settings
    return {
        key: value.partition(":")[0]
        if key == "device" and isinstance(value, str)
        else omit_device_numbers(value)
        for key, value in settings.items()
    }


@dataclass(frozen=True)
class PlannedRequest:
    """One request.

    Args:
        address: Identifies the reply; requests with one address are sent once.
        is_stored: Whether the reply is stored, so that nothing is sent.
        prompt_tokens: An upper estimate of the tokens of the prompt.
        completion_tokens: The largest number of tokens of the reply.
        money: What these tokens cost by the prices of the spec; None without prices.
        budget: How many requests the budget of its model allows; None is no limit.
    """

    address: str
    is_stored: bool
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: float | None = None
    budget: int | None = None


@runtime_checkable
class PlansRequests(Protocol):
    """A model that sends requests to a language model and can list them before."""

    def plan_requests(
        self, queries: Queries, k: int, data: TrainingData
    ) -> Sequence[PlannedRequest]:
        """Return the requests for lists of ``k``, without sending any."""


def sends_requests(model: object) -> bool:
    """Return whether a model sends requests; one whose ``llm`` is null is in the process."""
    return isinstance(model, PlansRequests) and getattr(model, "llm", model) is not None


@runtime_checkable
class AsksAboutItems(Protocol):
    """A detector that asks a language model about each item, and keeps what it replied."""

    def plan_label_requests(self, items: Attributes) -> Sequence[PlannedRequest]:
        """Return the requests of ``label``, without sending any."""

    def label_with_replies(
        self, items: Attributes
    ) -> tuple[Mapping[str, FloatArray], pd.DataFrame]:
        """Return the columns of ``label``, and a row for each reply.

        The rows have ``item_id``, ``sample``, ``reply``, ``outcome``, ``reading``, and the columns
        ``probability.KIND`` and ``label.KIND``.
        """


Output: TypeAlias = Literal[
    "lists", "embeddings", "sentence_scores", "responses", "predictions", "policy", "shown"
]
"""An output of a model."""

OUTPUTS = frozenset[str](get_args(Output))
"""All outputs of models; other evidence comes from the dataset and the split."""

_PARTS = frozenset({"train", "users", "items", "reviews", "sentences"})
"""The parts that a dataset may have."""

NAMES: Mapping[tuple[str, str], frozenset[str]] = {
    ("metrics", "needs"): _PARTS | set(REMEDIES),
    ("models", "needs"): _PARTS | {"times", "validation", "log"},
    ("models", "provides"): OUTPUTS,
    ("rerankers", "needs"): _PARTS,
    ("datasets", "gives"): _PARTS,
    ("splits", "gives"): frozenset({"train", "test", "validation"}),
}
"""The names that a member of a kind of plug-in may hold."""

State: TypeAlias = Mapping[str, AnyArray]
"""The learned parameters of a model as named arrays, the form in which they are stored."""

InputFile: TypeAlias = Annotated[Path, "a file that must be there, relative to the spec"]
"""The type of a setting that names a file of the user."""

ModelName: TypeAlias = Annotated[str, "a model; its folder is relative to the spec"]
"""The type of a setting that names a pretrained model: a folder, a package or a model of a hub."""


class DatasetSource(Protocol):
    """Loads a dataset."""

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` returns: ``train``, ``users``, ``items``, ``reviews``."""

    def files(self, data: Path) -> Sequence[Path]:
        """Return every file that ``load`` reads; MissingFile's remedy is the download command."""

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Load the files; ``rng`` is for generated datasets."""


class Filter(Protocol):
    """Excludes interactions; one that changes other parts only has ``keeps_interactions = True``.

    Any other is refused where the interactions of the dataset are not used.
    """

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return the dataset without the excluded interactions; NothingLeft if none remains."""


class Splitter(Protocol):
    """Splits interactions into train, validation and test sets, ``folds`` times."""

    folds: int

    def gives(self) -> frozenset[str]:
        """Return the sets it makes: ``test``, ``validation``; ``train`` if it reads its own."""

    def split(self, dataset: Dataset, fold: int, rng: np.random.Generator) -> Split:
        """Return the split of fold ``fold`` (from 0); ``rng`` is the generator of the fold."""


class QuerySource(Protocol):
    """Selects or generates the queries."""

    def ask(self, dataset: Dataset, rng: np.random.Generator) -> Queries:
        """Return the queries."""


class FittedRecommender(Protocol):
    """A recommender with its learned parameters.

    One with embeddings has ``embeddings()``: ``Embeddings`` by the codes of the training data.
    """

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return a list for each query: ``k`` or fewer ``data.candidates``, best first.

        Training items of the query are excluded; ties are in the order of the item codes.
        """


@runtime_checkable
class Storable(Protocol):
    """A fitted recommender whose learned parameters are arrays, which are stored between runs."""

    def state(self) -> State:
        """Return the arrays by name."""


class Recommender(Protocol):
    """The hyperparameters of a model; ``fit`` returns another object with what it learned.

    ``provides`` are the outputs of the fitted object, ``needs`` the parts of the training data
    that it reads (``times`` are those of the interactions; ``ChecksData`` refuses data without),
    and ``libraries`` the packages whose version is part of its content address. A recommender
    whose fitted object is Storable also has ``restore``, see ``Restores``. One that can exhaust
    the memory may have ``least_memory(n_users, n_items)``, see ``get_least_memory``.
    """

    provides: ClassVar[frozenset[Output]]
    needs: ClassVar[frozenset[str]]
    libraries: ClassVar[tuple[str, ...]]

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedRecommender:
        """Return the recommender fitted to the training data."""


def get_least_memory(model: object, n_users: int, n_items: int) -> float:
    """Return the bytes that the training of a model needs at least, by its ``least_memory``.

    A model is refused where they are more than the process may use. 0 if it does not say.
    """
    count = getattr(model, "least_memory", None)
    return 0.0 if count is None else float(count(n_users, n_items))


@runtime_checkable
class Restores(Protocol):
    """A recommender that can be restored from stored parameters."""

    def restore(self, state: State) -> FittedRecommender:
        """Return the fitted recommender with the stored parameters."""


class Metric(Protocol):
    """A metric: computes measurements from evidence.

    ``needs`` are the kinds of evidence that it reads. ``unit`` is the unit of its per-unit scores,
    one of ``scores.Unit``: ``query`` for one score for each query, "" for a value of the whole set
    of lists. Reports read the formula (the first indented block), ``Range:`` and ``Source:`` from
    the docstring.
    """

    needs: ClassVar[frozenset[str]]
    direction: ClassVar[Direction]
    unit: ClassVar[str]

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the values of the metric."""


@runtime_checkable
class NeedsByParameters(Protocol):
    """A metric or model whose settings change what it needs."""

    def needs_now(self) -> frozenset[str]:
        """Return the needs under the current settings; they replace ``needs``."""


@runtime_checkable
class FitsGroups(Protocol):
    """A metric that fits something to each group of queries for which it is reported."""

    def fit_by(self, label: str) -> Mapping[str, Any]:
        """Return the settings that change for values by a label."""


@runtime_checkable
class Pools(Protocol):
    """A metric whose value over several datasets follows from counts that add up."""

    def of_counts(self, counts: FloatArray) -> float:
        """Return the value of the metric from summed ``Measurement.counts``."""


@runtime_checkable
class HasBounds(Protocol):
    """A metric whose range is narrower in some settings, or for some of its values."""

    def find_bounds(self, row: Measurement) -> Bounds:
        """Return the lowest and the highest value, at which the interval ends."""


@runtime_checkable
class ChecksEarly(Protocol):
    """A metric that can validate its settings against the data before any model is trained."""

    def check(self, evidence: Evidence) -> None:
        """Raise the UserError of ``measure`` about the data; ``where`` is the setting at fault."""


@runtime_checkable
class ChecksFiles(Protocol):
    """A model that reads the output of other tools, or data, and can validate its files alone."""

    def check_files(self, datasets: Sequence[str]) -> None:
        """Raise the errors of ``fit`` about the files alone, for datasets given by their labels.

        They are a UserError whose ``where`` is the file or ``file:line``, or Faults with several.
        """


@runtime_checkable
class ReadsModels(Protocol):
    """A plug-in that reads a pretrained model or a dictionary by its name."""

    def model_files(self) -> Sequence[Path]:
        """Return the local files, in a fixed order, whose content is part of its address."""


@runtime_checkable
class ActsAfterTests(Protocol):
    """A metric whose settings ``after_tests`` change its value, but not its contrasts."""

    after_tests: ClassVar[frozenset[str]]


@runtime_checkable
class ChecksData(Protocol):
    """A model that can validate its settings against the data before any model is trained."""

    def check_data(self, data: TrainingData) -> None:
        """Raise the UserError of ``fit`` about columns, ``where`` the setting; must be cheap."""


class Detector(Protocol):
    """Labels items from their attributes: an entry of ``labels:``; see ``Recommender``."""

    libraries: ClassVar[tuple[str, ...]]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of label; ``gender`` of labels ``ngim`` becomes the column ``ngim.gender``."""

    def label(self, items: Attributes, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return one column for each kind, ``float64[n_items]``: 0 or 1, NaN if undefined.

        A column ``gender_score`` holds graded values beside the binary column ``gender``.
        """


@dataclass(frozen=True)
class SelectedModel:
    """A model as the setting of another: its name and its settings, as in ``models:``.

    Args:
        name: Its registered name; of ``./file.py:Name`` with the absolute path.
        model: The recommender.
    """

    name: str
    model: Any


@runtime_checkable
class ReordersCandidates(Protocol):
    """A recommender that reorders the candidates of another.

    The other model is fitted, or restored, as if it stood in the spec by itself, so that its
    stored training is shared with it.
    """

    @property
    def candidates(self) -> SelectedModel:
        """The other model."""

    def wrap(
        self, fitted: FittedRecommender, data: TrainingData, rng: np.random.Generator
    ) -> FittedRecommender:
        """Return the recommender that reorders the lists of the fitted other model."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidate lists of a model, best first, and the training data; never the test set.

    Args:
        lists: The lists of the model, longer than those that are recommended.
        histories: The training items of each query, CSR ``(q, n_items)``; an empty row for a query
            that is not a user.
        data: The training data with the attributes of the items.
    """

    lists: RankedLists
    histories: Matrix
    data: TrainingData

    @property
    def filled(self) -> BoolArray:
        """Which positions hold an item, ``bool[q, n]``."""
        return self.lists.filled

    @cached_property
    def items(self) -> Codes:
        """The items, ``int32[q, n]``; -1 if empty or outside the catalogue."""
        return np.where(self.lists.items < self.data.train.n_items, self.lists.items, -1)

    @cached_property
    def scores(self) -> FloatArray:
        """The scores between 0 and 1, ``float64[q, n]``; NaN in empty positions.

            s = (score - lowest of the list) / (highest - lowest)

        They are 1 in a list of equal scores. A list without scores has ``1 - (rank - 1) / n``.
        """
        values = self.lists.scores.astype(np.float64)
        ranks = np.broadcast_to(1.0 - np.arange(values.shape[1]) / values.shape[1], values.shape)
        has_scores = np.isfinite(np.where(self.filled, values, 0.0)).all(axis=1, keepdims=True)
        values = np.where(self.filled, np.where(has_scores, values, ranks), np.nan)
        lowest = np.fmin.reduce(values, axis=1, keepdims=True)
        spread = np.fmax.reduce(values, axis=1, keepdims=True) - lowest
        is_flat = np.where(spread > 0, spread, np.inf)
        scaled = np.where(spread > 0, (values - lowest) / is_flat, 1.0)
        return np.where(self.filled, np.where(has_scores, scaled, values), np.nan)

    def take(self, start: int, stop: int) -> Candidates:
        """Return the candidates of some of the queries, by position."""
        rows = slice(start, stop)
        lists = self.lists
        part = RankedLists(lists.items[rows], lists.scores[rows], lists.outside)
        return replace(self, lists=part, histories=self.histories[rows])


class Reranker(Protocol):
    """The settings of a re-ranker, which selects lists from the candidates of a model.

    ``candidates`` is the number of candidates of each query, ``dial`` the setting of which a spec
    may give a list of values, each of which makes lists of its own; blank if there is none. For
    ``needs`` and ``libraries`` see ``Recommender``. It may have ``check_data`` of ``ChecksData``.
    """

    needs: ClassVar[frozenset[str]]
    libraries: ClassVar[tuple[str, ...]]
    dial: ClassVar[str]
    candidates: int

    def rerank(self, candidates: Candidates, k: int) -> Codes:
        """Return the positions of the selected candidates, best first, ``int32[q, k]``.

        -1 pads the end of a row, which holds no position twice.
        """


@dataclass(frozen=True)
class RerankedModel:
    """A model whose lists are re-ranked, as an entry of a spec stands for it."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset()
    libraries: ClassVar[tuple[str, ...]] = ()

    base: SelectedModel
    reranker: Any

    def needs_now(self) -> frozenset[str]:
        """Return what the model and the re-ranker need."""
        model = self.base.model
        needs = model.needs_now() if isinstance(model, NeedsByParameters) else model.needs
        return frozenset(needs) | frozenset(self.reranker.needs)

    def check_data(self, data: TrainingData) -> None:
        """Refuse settings of the re-ranker that do not fit the data."""
        if isinstance(self.reranker, ChecksData):
            self.reranker.check_data(data)
