"""The protocols of plug-ins: one for each kind; no base class is needed.

A plug-in is a frozen dataclass, whose fields are its settings. They, and the content of the files
that they name (``InputFile``), are part of the content address of its results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np

from recbias.core.arrays import AnyArray, Codes, FloatArray, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.split import Split, TrainingData
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Embeddings, Evidence
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.outputs.text_outputs import Responses, SentenceScores
from recbias.core.queries.queries import Queries

Output: TypeAlias = Literal["lists", "embeddings", "sentence_scores", "responses", "predictions"]
"""An output of a model."""

OUTPUTS = frozenset[str](get_args(Output))
"""All outputs of models; other evidence comes from the dataset and the split."""

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
    """Excludes interactions."""

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
    """A recommender with its learned parameters."""

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return a list for each query: ``k`` or fewer ``data.candidates``, best first.

        Training items of the query are excluded; ties are in the order of the item codes.
        """


@runtime_checkable
class Storable(Protocol):
    """A fitted recommender whose learned parameters are arrays, which are stored between runs."""

    def state(self) -> State:
        """Return the arrays by name."""


@runtime_checkable
class HasEmbeddings(Protocol):
    """A fitted recommender with embeddings of users or items."""

    def embeddings(self) -> Embeddings:
        """Return the embeddings, indexed by the codes of the training data."""


@runtime_checkable
class HasSentenceScores(Protocol):
    """A fitted model that scores sentences."""

    def sentence_scores(self, queries: Queries) -> SentenceScores:
        """Return the scores of the queries, or of the sentences in the model's own file."""


@runtime_checkable
class HasResponses(Protocol):
    """A fitted model that generates text."""

    def responses(self, queries: Queries) -> Responses:
        """Return the response to each query, or the responses in the model's own file."""


@runtime_checkable
class NamesItems(Protocol):
    """A fitted model that predicts the item that a text is about."""

    def named(self, texts: Ids, data: TrainingData) -> Codes:
        """Return all candidates for each text, the most likely first, ``int32[n, c]``."""


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
class Pools(Protocol):
    """A metric whose value over several datasets follows from counts that add up."""

    def of_counts(self, counts: FloatArray) -> float:
        """Return the value of the metric from summed ``Measurement.counts``."""


@runtime_checkable
class ChecksEarly(Protocol):
    """A metric that can validate its settings against the data before any model is trained."""

    def check(self, evidence: Evidence) -> None:
        """Raise the UserError of ``measure`` about the data; ``where`` is the setting at fault."""


@runtime_checkable
class ChecksFiles(Protocol):
    """A model that reads the output of other tools and can validate the files without the data."""

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
class ActsAfterFit(Protocol):
    """A recommender whose settings ``after_fit`` affect its lists, but not its training."""

    after_fit: ClassVar[frozenset[str]]


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
