"""What each kind of plug-in must do: one Protocol a kind, nothing to inherit.

A plug-in is a frozen dataclass. Its fields are its parameters; its docstring, types and defaults
are its documentation, its schema and its part of every content address: of a file that one of them
names (an ``InputFile``), what it holds counts.
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
from recbias.core.outputs.sentences import Responses, SentenceScores
from recbias.core.queries.queries import Queries

Output: TypeAlias = Literal["lists", "embeddings", "sentence_scores", "responses", "predictions"]
"""What a model gives."""

OUTPUTS = frozenset[str](get_args(Output))
"""All of it; every other need is met by the dataset and the split."""

State: TypeAlias = Mapping[str, AnyArray]
"""What a model learned, as named arrays; how it is stored."""

InputFile: TypeAlias = Annotated[Path, "a file that must be there, relative to the spec"]
"""The type of a parameter that names a file of the user's."""

ModelName: TypeAlias = Annotated[str, "a model; its folder is relative to the spec"]
"""The type of a parameter that names a pretrained model: a folder, a package, or one of a hub."""


class DatasetSource(Protocol):
    """Reads a dataset.

    ``gives`` says which of ``train`` (interactions), ``users``, ``items``, ``reviews`` it will
    read; ``files`` names every file it reads below the data folder (or wherever its own parameters
    point), and raises MissingFile, with the command that would fetch it, for one that is absent.
    """

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` will read."""
        ...

    def files(self, data: Path) -> Sequence[Path]:
        """Return every file that ``load`` reads."""
        ...

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files; ``rng`` is for datasets that are generated."""
        ...


class Filter(Protocol):
    """Leaves out interactions."""

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return what is left; NothingLeft where nothing is."""
        ...


class Splitter(Protocol):
    """Divides interactions into train, validation and test; ``folds`` times."""

    folds: int

    def gives(self) -> frozenset[str]:
        """Return what it makes: ``test``, ``validation``, and ``train`` where it reads its own."""
        ...

    def split(self, dataset: Dataset, fold: int, rng: np.random.Generator) -> Split:
        """Return fold ``fold`` (from 0); ``rng`` is that fold's own generator."""
        ...


class QuerySource(Protocol):
    """Says who or what is asked."""

    def ask(self, dataset: Dataset, rng: np.random.Generator) -> Queries:
        """Return the queries."""
        ...


class FittedRecommender(Protocol):
    """What a recommender learned."""

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return a list for each query, without the query's own training items.

        Only ``data.candidates`` are recommended, best first, ties by ascending item code; a list
        is shorter than ``k`` where fewer candidates are left.
        """
        ...


@runtime_checkable
class Storable(Protocol):
    """A fitted recommender that is plain arrays, stored between runs."""

    def state(self) -> State:
        """Return the arrays, each under a name."""
        ...


@runtime_checkable
class HasEmbeddings(Protocol):
    """A fitted recommender with vectors."""

    def embeddings(self) -> Embeddings:
        """Return the vectors over the codes of the training data."""
        ...


@runtime_checkable
class HasSentenceScores(Protocol):
    """A fitted model that says how likely sentences are."""

    def sentence_scores(self, queries: Queries) -> SentenceScores:
        """Return the scores of the sentences asked, or of a file's own."""
        ...


@runtime_checkable
class HasResponses(Protocol):
    """A fitted model that answers in words."""

    def responses(self, queries: Queries) -> Responses:
        """Return what it wrote to each query, or what a file holds."""
        ...


@runtime_checkable
class NamesItems(Protocol):
    """A fitted model that names the item that a text is about."""

    def named(self, texts: Ids, data: TrainingData) -> Codes:
        """Return all candidates for each text, the likeliest first, ``int32[n, c]``."""
        ...


class Recommender(Protocol):
    """Hyperparameters; ``fit`` returns another object that holds what was learned.

    ``provides`` says what the fitted object gives; ``needs`` which parts of the training data it
    reads (``train``, ``items``, ``users``, ``reviews``, ``validation``). ``libraries`` names the
    packages whose version is part of the address of what it learned. A recommender whose fitted
    object is Storable has ``restore(state) -> FittedRecommender`` beside ``fit``.
    """

    provides: ClassVar[frozenset[Output]]
    needs: ClassVar[frozenset[str]]
    libraries: ClassVar[tuple[str, ...]]

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedRecommender:
        """Learn from the training data."""
        ...


@runtime_checkable
class Restores(Protocol):
    """A recommender that can be given back what it learned."""

    def restore(self, state: State) -> FittedRecommender:
        """Return the fitted recommender of a stored state."""
        ...


class Metric(Protocol):
    """Evidence in, measurements out.

    ``needs``: kinds of evidence (``lists``, ``test``, ``train``, ``items``, ``embeddings``, ...).
    Reports and ``recbias show`` read its formula (the first indented block), range (``Range:``)
    and source (``Source:``) from the docstring.
    ``unit`` is what per-unit values are of: ``query`` for one value a query, "" for a figure of
    the whole set of lists.
    """

    needs: ClassVar[frozenset[str]]
    direction: ClassVar[Direction]
    unit: ClassVar[str]

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the figures."""
        ...


@runtime_checkable
class NeedsByParameters(Protocol):
    """A metric or model whose parameters change what it needs.

    ``needs_now`` then counts, not ``needs``.
    """

    def needs_now(self) -> frozenset[str]:
        """Return what it needs with the parameters it has."""
        ...


@runtime_checkable
class Pools(Protocol):
    """A metric whose figure over several datasets together follows from counts that add up."""

    def of_counts(self, counts: FloatArray) -> float:
        """Return the figure of the sum of the ``counts`` of several measurements."""
        ...


@runtime_checkable
class ChecksEarly(Protocol):
    """A metric that can tell from the data alone that it cannot be measured.

    ``check`` is called once the data is read and before any model is trained, with evidence that
    has everything but what models give; it raises a UserError whose ``where`` is the name of the
    parameter at fault (``label``, ``attribute``), so that a typo costs seconds.
    """

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the queries, items, users and interactions."""
        ...


@runtime_checkable
class ChecksFiles(Protocol):
    """A model of files made elsewhere that can tell without the dataset that they are broken.

    ``check_files`` is called before any model is trained. It raises what ``fit`` would raise of
    the files by themselves: a UserError whose ``where`` is the file, or ``file:line``, or Faults
    of several. The TrainingData of such a model carries the dataset's label.
    """

    def check_files(self, datasets: Sequence[str]) -> None:
        """Read the files as for each of the datasets, given by their labels."""
        ...


@runtime_checkable
class ReadsModels(Protocol):
    """A plug-in that reads a pretrained model, or a dictionary, which it knows by a name.

    What the files hold is part of the address of what it makes.
    """

    def model_files(self) -> Sequence[Path]:
        """Return those of the files that lie on this machine for it alone, always in one order."""
        ...


@runtime_checkable
class ActsAfterFit(Protocol):
    """A recommender with settings that change what it answers but not what it learns.

    Models that differ in these alone are trained once.
    """

    after_fit: ClassVar[frozenset[str]]


@runtime_checkable
class ChecksData(Protocol):
    """A model that can tell from the data, before any is trained, that it cannot be.

    ``check_data`` is called before any model is trained. It raises what ``fit`` would raise of the
    columns that parameters name: a UserError whose ``where`` is the name of the parameter.
    """

    def check_data(self, data: TrainingData) -> None:
        """Look at the data, but do no work on it."""
        ...


@runtime_checkable
class ChecksMachine(Protocol):
    """A model that can tell, before any is trained, that this machine cannot train it."""

    def check_machine(self) -> None:
        """Raise what ``fit`` would raise: a UserError whose ``where`` is the parameter's name."""
        ...


class Detector(Protocol):
    """Labels items by what is known of them: an entry of ``labels:``.

    ``kinds`` says which stereotypes it labels (``gender``, ``race``, ``religion``), in order: the
    labels called ``ngim`` of the kind ``gender`` are the item column ``ngim.gender``.
    ``libraries`` names the packages whose version is part of the address of its labels.
    """

    libraries: ClassVar[tuple[str, ...]]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds of label that it gives."""
        ...

    def label(self, items: Attributes, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return one column a kind, ``float64[n_items]``: 0 or 1, NaN where nothing can be said.

        A kind may be followed by ``_score``: a graded column beside the 0/1 one.
        """
        ...


class PairedTest(Protocol):
    """A two-sided test that two systems have the same mean, over paired units.

    ``pairs`` takes all systems at once; see ``statistics.compare``.
    """

    @property
    def alpha(self) -> float:
        """The level: a corrected p-value of at most this is significant."""
        ...

    @property
    def correction(self) -> Literal["none", "bonferroni", "holm", "bh"]:
        """How the p-values of a family are corrected."""
        ...

    @property
    def family(self) -> Literal["metric", "report"] | int:
        """Which comparisons are corrected together."""
        ...

    def pairs(self, values: FloatArray, rng: np.random.Generator) -> Mapping[str, AnyArray]:
        """Return the columns of ``significance.csv`` for all pairs of rows of ``values``.

        Args:
            values: ``float64[s, u]``, one row a system, one column a unit; NaN is undefined.
            rng: The generator of this figure.
        """
        ...
