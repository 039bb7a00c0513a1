"""Plug-ins as a spec selects them, with their settings filled in.

The keys of an experiment file, apart from the settings of plug-ins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import Ge, Gt, Le, MaxLen, MinLen

from recbias.core.errors import ConfigError, Contradiction, OutOfRange, WrongType
from recbias.core.grouping import parse_uncertain_label, validate_grouping
from recbias.core.measures import Direction, parse_metric
from recbias.core.plugins import BASELINES, Device, FitsGroups, NeedsByParameters, OnlyWith
from recbias.core.text import normalize_name
from recbias.formats.yaml import KeyPath


@dataclass(frozen=True)
class Range:
    """The interval that a search samples a setting from.

    Args:
        low: The lower bound.
        high: The upper bound, inclusive.
        log: Whether values are sampled uniformly on a logarithmic scale.
        integer: Whether only integers are sampled.
    """

    parameter: str
    low: float
    high: float
    log: bool
    integer: bool


@dataclass(frozen=True)
class Choice:
    """The values that a search samples a setting from.

    Args:
        values: The values as in the spec.
        parsed_values: The same values as the plug-in accepts them.
    """

    parameter: str
    values: tuple[Any, ...]
    parsed_values: tuple[Any, ...] = field(default=(), compare=False)


Dimension: TypeAlias = Range | Choice
"""One setting of a search space."""

_Pruning: TypeAlias = Literal["median", "none"]
"""When a trial is stopped because earlier trials were better at the same epoch."""

Objective: TypeAlias = Literal["value", "largest_p"]
"""What a trial is judged by: the value of the metric, or the p-value of its test."""


@dataclass(frozen=True)
class Tune:
    """The hyperparameter search of a model.

    Args:
        written: The ``tune`` mapping of the spec with defaults filled in.
        parallel: The number of trials sampled at once, from the results of the trials before.
        objective: What a trial is judged by.
        max_perplexity_increase: The increase of perplexity above which a trial is excluded.
    """

    metric: PluginSpec
    trials: int
    space: tuple[Dimension, ...]
    written: dict[str, Any]
    pruning: _Pruning = "median"
    parallel: int = 1
    objective: Objective = "value"
    max_perplexity_increase: float | None = None

    @property
    def direction(self) -> Direction:
        """Whether a higher or lower value of a trial is better."""
        return "higher" if self.objective == "largest_p" else self.metric.direction


# fmt: off
Gap: TypeAlias = Literal[
    "groups", "difference", "ratio", "std", "ugf", "mad", "cross_entropy", "atkinson",
    "atkinson_within", "atkinson_total", "worst", "worst_quarter",
]
# fmt: on
"""How a metric is reported by group: the mean of each group, or one number for their spread."""

DEFAULT_GAPS: tuple[Gap, ...] = ("groups", "difference", "ratio", "std")
"""The ways in which a metric with ``by`` and without ``gap`` is reported."""

_OF_METRIC = ("groups", "worst", "worst_quarter")
"""The gaps of which that value is best that is best of the metric; of others, a small one."""


_GroupName: TypeAlias = str | int | float


@dataclass(frozen=True)
class Grouping:
    """The keys of an entry of a metric that is reported by groups of queries.

    Args:
        by: Labels or conditions of the queries, joined by &; bins or quantiles of numbers:
            age in [18, 25, 50], age in 4 quantiles; or columns of probabilities:
            probability of p_female, weight of p_f + p_m.
        gap: How the groups are reported; without the key in the first four ways.
        min_group: The least number of values of a group that is compared with others.
        reference_group: The group that each other group is compared with.
        pairs: The two groups of each comparison, in place of all pairs.
    """

    by: str
    gap: Gap | None = None
    min_group: Annotated[int, Ge(0)] = 0
    reference_group: _GroupName = ""
    pairs: tuple[tuple[_GroupName, _GroupName], ...] = ()

    def __post_init__(self) -> None:
        """Refuse groups that are not formed, and comparisons that are not made.

        Raises:
            ConfigError: There are some.
        """
        try:
            validate_grouping(self.by)
        except ConfigError as error:
            raise type(error)(error.message, where="by", remedy=error.remedy) from error
        for key in ("reference_group", "pairs"):
            if getattr(self, key) not in {"", ()} and self.gap not in {None, "groups"}:
                message, remedy = f"has no effect with gap: {self.gap}", f"remove gap, or {key}"
                raise Contradiction(message, where=key, remedy=remedy)
        if self.pairs and self.reference_group != "":
            message, remedy = "has no effect with pairs", "remove one of the two"
            raise Contradiction(message, where="reference_group", remedy=remedy)
        object.__setattr__(self, "reference_group", str(self.reference_group))
        object.__setattr__(self, "pairs", tuple((str(a), str(b)) for a, b in self.pairs))

    def report(self, gap: Gap) -> Grouping:
        """Return the grouping with one way to report it; only groups have comparisons."""
        return (
            replace(self, gap=gap) if gap == "groups" else Grouping(self.by, gap, self.min_group)
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The keys of the entry: ``by``, ``gap``, and the others if they are given."""
        given = {name: value for name, value in vars(self).items() if value}
        given |= {"pairs": [list(pair) for pair in self.pairs]} if self.pairs else {}
        return {"by": self.by, "gap": self.gap or ""} | given


@dataclass(frozen=True)
class PluginSpec:
    """A plug-in as a spec selects it.

    Args:
        kind: The key of its registry: ``models``, ``metrics`` and so on.
        plugin: The dataclass with its settings.
        parameters: All settings as JSON, with paths as the user wrote them.
        where: Its place in the spec.
        source: The digest of its file for ``./file.py:Name``, else blank.
        rerankers: The re-rankers of a model, each of which makes another entry.
        reranked: Of such an entry, the model whose lists are re-ranked, and the re-ranker.
        is_labelled: Whether the label is written in the spec.
        baseline: Whether a model is a baseline, None if the spec does not say.
        base_label: The label without the settings that tell it from others, if it states some.
    """

    kind: str
    name: str
    label: str
    plugin: Any
    parameters: dict[str, Any]
    where: KeyPath
    source: str = ""
    tune: Tune | None = None
    grouping: Grouping | None = None
    rerankers: tuple[PluginSpec, ...] = ()
    reranked: Reranked | None = None
    is_labelled: bool = False
    baseline: bool | None = None
    base_label: str = ""

    @property
    def is_baseline(self) -> bool:
        """Whether a model is one that others are compared with, and that no headline is about."""
        return self.name in BASELINES if self.baseline is None else self.baseline

    @cached_property
    def needs(self) -> frozenset[str]:
        """The evidence that a metric or model needs with its settings."""
        plugin = self.plugin
        return (
            plugin.needs_now()
            if isinstance(plugin, NeedsByParameters)
            else frozenset(plugin.needs)
        )

    @cached_property
    def ungrouped(self) -> PluginSpec:
        """The metric without its groups, with its name as label; it may be fitted to them."""
        plain, grouping = replace(self, grouping=None, label=self.name), self.grouping
        if not grouping or parse_uncertain_label(grouping.by) is not None:
            return plain
        plugin: Any = self.plugin
        settings = plugin.fit_by(grouping.by) if isinstance(plugin, FitsGroups) else {}
        if not settings:
            return plain
        parameters = {**self.parameters, **settings}
        return replace(plain, plugin=replace(self.plugin, **settings), parameters=parameters)

    @property
    def cutoff(self) -> int | None:
        """The cutoff k of a metric, or None if it has none."""
        k = self.parameters.get("k")
        return k if isinstance(k, int) else None

    @property
    def split_settings(self) -> dict[str, Any]:
        """The keys of the entry that group a metric: ``by``, ``gap``, ..."""
        return self.grouping.settings if self.grouping else {}

    @property
    def direction(self) -> Direction:
        """Whether higher or lower is better; for a gap, a smaller difference is better."""
        gap = (self.grouping and self.grouping.gap) or "groups"
        direction: Direction = self.plugin.direction if gap in _OF_METRIC else "lower"
        return "higher" if gap == "ratio" else direction


@dataclass(frozen=True)
class Reranked:
    """A model, and the re-ranker of its lists."""

    base: PluginSpec
    reranker: PluginSpec


@dataclass(frozen=True)
class DatasetSpec:
    """A dataset and its filters, in the order in which they are applied."""

    source: PluginSpec
    filters: tuple[PluginSpec, ...]

    @property
    def label(self) -> str:
        """The label of the dataset."""
        return self.source.label


_Entry: TypeAlias = Any
"""A plug-in: a name, or a mapping with ``name``, ``label`` and settings."""

_Seed: TypeAlias = Annotated[int, Ge(0), Le(2**63 - 1)]
"""A seed of the random generators."""

_Format: TypeAlias = Literal[
    "csv", "json", "md", "html", "latex", "card", "card_hub", "card_ll144", "card_eu", "pdf", "png"
]
"""A file format of reports: ``card`` is the audit card, ``card_hub`` that for the Hugging Face
hub, ``card_ll144`` and ``card_eu`` are its forms by rules on audits, ``pdf`` and ``png`` are of
figures."""

_Tracker: TypeAlias = Literal["mlflow", "wandb"]

_NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,100}")
_RESERVED_NAMES = {"store", "latest"}


@dataclass(frozen=True, kw_only=True)
class ReportSpec:
    """The reports of a run.

    Args:
        formats: The formats to write.
        reference: Published results to compare with: ``children/a3``, or several:
            ``[aab/1, aab/2]``.
        tolerance: The largest difference from a published value that counts as agreement.
        examples: Whether the page shows single users, prompts or sentences, with their lists.
    """

    formats: tuple[_Format, ...] = ("csv", "json", "md", "html", "latex")
    reference: str | Annotated[tuple[str, ...], MaxLen(100)] | None = None
    tolerance: Annotated[float, Ge(0), OnlyWith("reference")] = 0.01
    examples: bool = True

    @property
    def references(self) -> tuple[str, ...]:
        """The names of the published tables."""
        if isinstance(self.reference, str):
            return (self.reference,)
        return self.reference or ()


_Bounds: TypeAlias = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class IntervalSpec:
    """What a search samples a setting from: one of the keys.

    Args:
        log: The bounds of an interval that is sampled on a logarithmic scale.
        float_: The bounds of an interval.
        int_: The bounds of whole numbers.
        choice: The values.
    """

    log: _Bounds | None = None
    float_: _Bounds | None = None
    int_: _Bounds | None = None
    choice: Annotated[tuple[Any, ...], MinLen(1)] | None = None

    def __post_init__(self) -> None:
        """Refuse several intervals, and bounds that hold nothing.

        Raises:
            ConfigError: There are some.
        """
        given = {name: value for name, value in vars(self).items() if value is not None}
        if len(given) != 1:
            remedy = "write {log: [0.001, 1]}, {float: [0, 1]}, {int: [5, 1000]}, {choice: [a, b]}"
            raise Contradiction(f"needs one interval, found {len(given)}", remedy=remedy)
        ((name, values),) = given.items()
        where = name.removesuffix("_")
        if self.choice is None and not values[0] < values[1]:
            message, remedy = f"{values[0]:g} is not below {values[1]:g}", "give the lower first"
            raise OutOfRange(message, where=where, remedy=remedy)
        if self.log is not None and self.log[0] <= 0:
            message, remedy = f"{self.log[0]:g} has no logarithm", "use a lower bound above 0"
            raise OutOfRange(message, where=where, remedy=remedy)


@dataclass(frozen=True, kw_only=True)
class TuneSpec:
    """The hyperparameter search of a model; trials are compared on the validation set.

    Args:
        metric: The metric to optimize.
        trials: The maximum number of trials, at most 2,000. If ``space`` has no more combinations
            than that, each combination is tried once.
        space: The search space by setting: ``{log: [a, b]}``, ``{float: [a, b]}``,
            ``{int: [a, b]}`` or ``{choice: [...]}``; or the name of a packaged space: ``thesis``.
        pruning: ``median`` stops a trial that is worse than half of the earlier trials at the same
            epoch, ``none`` lets every trial finish.
        parallel: The number of trials to sample at once, from the results of the trials before,
            so that as many workers can run them.
        objective: ``value`` is the best value of the metric: of a gap, the smallest absolute one.
            ``largest_p`` is the largest p-value of its test, as in the code of CHBias; it rewards
            noise, and models that are worse at every sentence.
        max_perplexity_increase: For models that train a pretrained language model further: a trial
            is excluded if the perplexity of the validation sentences is higher than that of the
            pretrained model by more than this share. 0.1 by default with ``objective: value``, and
            no limit with ``largest_p``.
    """

    metric: _Entry
    trials: Annotated[int, Gt(0), Le(2_000)] = 20
    pruning: _Pruning = "median"
    parallel: Annotated[int, Gt(0)] = 1
    objective: Objective = "value"
    max_perplexity_increase: Annotated[float, Ge(0)] | None = None
    space: Annotated[dict[str, Any], MinLen(1)]


@dataclass(frozen=True, kw_only=True)
class ClaimSpec:
    """A statement that a run is asked to confirm: the value of ``model`` is higher or lower.

    Args:
        metric: A metric with a value for each unit: ``nDCG``, ``nDCG@5``, or an entry.
        target: The target of the metric, as in ``metrics.csv``: ``within 3 sd``, ``price=1``.
        model: The label of the model.
        against: The label of the model to compare with. Without it, the gap of ``model`` is
            compared with 0, or its value with ``than``.
        by: The label of the users or prompts whose groups are compared.
        groups: Two groups: the gap is the mean of the first minus that of the second. Without
            them, the label must have two groups, and the gap is absolute.
        gap: ``difference`` of the means of the two groups.
        direction: Whether the claim is "higher" or "lower".
        than: The number to compare the value with, if there is no ``against`` and no ``by``.
        alpha: The significance level.
        correction: Corrects p for testing the same claim on every pair of models (on every model,
            without ``against``): ``none``, ``bonferroni``, ``holm`` or ``bh``.
    """

    metric: str | dict[str, Any]
    target: str | None = None
    model: str
    against: str | None = None
    by: str | None = None
    groups: Annotated[tuple[str, str], OnlyWith("by")] | None = None
    gap: Annotated[Literal["difference"], OnlyWith("by")] = "difference"
    direction: Literal["higher", "lower"]
    than: float | None = None
    alpha: Annotated[float, Gt(0), Le(0.5)] = 0.05
    correction: Literal["none", "bonferroni", "holm", "bh"] = "none"

    def __post_init__(self) -> None:
        """Refuse a claim that compares with nothing, or with two things.

        Raises:
            Contradiction: It does.
        """
        if self.against is None and self.by is None and self.than is None:
            message, remedy = "compares with nothing", "add against: a model, by: a label, or than"
            raise Contradiction(message, remedy=remedy)
        if self.than is not None and (self.against is not None or self.by is not None):
            message = "has no effect beside against or by"
            raise Contradiction(message, where="than", remedy="remove than")
        if self.by is not None and self.against is None and self.groups is None:
            message = "a gap of one model has a direction only between groups in order"
            raise Contradiction(message, where="by", remedy="add groups: [the first, the second]")


def read_metric_name(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the settings of a metric; of what is not its notation, the text."""
    try:
        return parse_metric(text)
    except WrongType:
        return text, {}


def find_claimed(
    metrics: Sequence[PluginSpec], metric: str | Mapping[str, Any], k: int
) -> PluginSpec | None:
    """Return the metric that a claim is about, at ``k`` if it names no cutoff; None without it."""
    entry = {"name": metric} if isinstance(metric, str) else dict(metric)
    name, settings = read_metric_name(str(entry.pop("name", "")))
    wanted = {"k": k} | settings | entry
    for spec in metrics:
        given = spec.parameters | {"k": spec.cutoff or wanted["k"]}
        is_named = normalize_name(spec.name) == normalize_name(name)
        if is_named and all(given.get(key) == value for key, value in wanted.items()):
            return spec
    return None


@dataclass(frozen=True, kw_only=True)
class ExperimentFile:
    """An experiment file.

    Args:
        name: The folder of its results: letters, digits, ``.``, ``_`` and ``-``.
        seed: The seed of all random numbers.
        seeds: A list of at most 1,000 seeds instead of one; the experiment is repeated for each.
        dataset: A dataset with its filters, or a list of datasets.
        split: The split of the interactions into train, validation and test set.
        queries: The users or prompts to recommend for.
        device: The device of all models without a ``device`` of their own.
        k: The length of the recommendation lists, at most 10,000.
        models: The models to evaluate.
        labels: Labels of items from stereotype detection models.
        metrics: The metrics to compute for each model.
        tests: The significance tests that compare models.
        checks: Limits on metric values; a run that exceeds one exits with code 3.
        report: The reports to write.
        track: The trackers to which the finished run is logged: ``mlflow``, ``wandb`` or both.
        sweep: Settings of models and datasets, and seeds, to vary. It maps the path of each
            setting to a list of values; every combination is run.
        claim: The statement that a multiverse tests.
        multiverse: The choices under which the claim is tested. It maps each choice (the path of
            a setting, ``filters``, or a key of the claim) to a list of options. Every
            combination is run, or, with ``sample``, a random sample of that size.
    """

    name: str
    seed: _Seed = 42
    seeds: Annotated[tuple[_Seed, ...], MinLen(1), MaxLen(1_000)] | None = None
    dataset: _Entry
    split: _Entry = None
    queries: _Entry = "users"
    device: Device = "auto"
    k: Annotated[int, Gt(0), Le(10_000)] = 10
    models: Annotated[tuple[_Entry, ...], MinLen(1), MaxLen(1_000)]
    labels: Annotated[tuple[_Entry, ...], MaxLen(1_000)] = ()
    metrics: Annotated[tuple[_Entry, ...], MaxLen(1_000)] = ()
    tests: Annotated[tuple[_Entry, ...], MaxLen(1_000)] = ()
    checks: Annotated[tuple[_Entry, ...], MaxLen(1_000)] = ()
    report: ReportSpec = ReportSpec()
    track: _Tracker | Annotated[tuple[_Tracker, ...], MaxLen(2)] = ()
    sweep: _Entry = None
    claim: ClaimSpec | None = None
    multiverse: _Entry = None


SECTIONS: Mapping[str, tuple[str, ...]] = {
    "datasets": ("dataset",),
    "filters": ("dataset", "filters"),
    "splits": ("split",),
    "queries": ("queries",),
    "models": ("models",),
    "rerankers": ("models", "rerank"),
    "detectors": ("labels",),
    "metrics": ("metrics",),
    "tests": ("tests",),
}
"""The keys of an experiment file that lead to the plug-ins of each kind."""


def validate_name(name: str) -> str:
    """Return the name of an experiment.

    Raises:
        OutOfRange: It cannot be the name of a results folder.
    """
    if not _NAME.fullmatch(name):
        message = f"{name!r} cannot be the name of a folder"
        remedy = "use 1 to 100 letters, digits, '.', '_' and '-', and do not begin with '.'"
        raise OutOfRange(message, remedy=remedy)
    if name.casefold() in _RESERVED_NAMES:
        message = f"{name!r} is a folder that recbias uses itself"
        raise OutOfRange(message, remedy="choose another name")
    return name
