"""The keys of an experiment file, apart from the settings of plug-ins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import Ge, Gt, Le, MaxLen, MinLen

from recbias.config.plugin_spec import Objective, Pruning
from recbias.core.errors import OutOfRange
from recbias.core.models.devices import Device

Entry: TypeAlias = Any
"""A plug-in: a name, or a mapping with ``name``, ``label`` and settings."""

Seed: TypeAlias = Annotated[int, Ge(0), Le(2**63 - 1)]
"""A seed of the random generators."""

Format: TypeAlias = Literal["csv", "json", "md", "html", "latex", "card"]
"""A file format of reports; ``card`` is the audit card."""

DEFAULT_SEED = 42
"""The seed of a spec without ``seed``."""

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
    """

    formats: tuple[Format, ...] = ("csv", "json", "md", "html", "latex")
    reference: str | Annotated[tuple[str, ...], MaxLen(100)] | None = None
    tolerance: Annotated[float, Ge(0)] = 0.01

    @property
    def references(self) -> tuple[str, ...]:
        """The names of the published tables."""
        if isinstance(self.reference, str):
            return (self.reference,)
        return self.reference or ()


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

    metric: Entry
    trials: Annotated[int, Gt(0), Le(2_000)] = 20
    pruning: Pruning = "median"
    parallel: Annotated[int, Gt(0)] = 1
    objective: Objective = "value"
    max_perplexity_increase: Annotated[float, Ge(0)] | None = None
    space: Annotated[dict[str, Any], MinLen(1)]


@dataclass(frozen=True, kw_only=True)
class FeedbackSpec:
    """A feedback loop: train, recommend, let users accept, add what they accept, train again.

    The dataset must know how its users choose. All metrics measure each round of each model.

    Args:
        rounds: The number of trainings; the first is that of the spec without feedback.
        acceptance: The probability that a user accepts an item of the ideal list.
        picks: The largest number of items that a user accepts in a round.
        position: How much less a lower rank is looked at: the odds of rank r are multiplied by
            ``r ** -position``; 0 for no difference between ranks.
    """

    rounds: Annotated[int, Ge(2), Le(100)]
    acceptance: Annotated[float, Ge(0.0), Le(1.0)] = 0.5
    picks: Annotated[int, Gt(0), Le(10_000)] = 1
    position: Annotated[float, Ge(0.0), Le(10.0)] = 1.0


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
        device: Where models compute that do not name a device themselves.
        k: The length of the recommendation lists, at most 10,000.
        models: The models to evaluate.
        labels: Labels of items from stereotype detection models.
        metrics: The metrics to compute for each model.
        tests: The significance tests that compare models.
        feedback: Rounds of training on what users accept, in a synthetic world.
        checks: Limits on metric values; a run that exceeds one exits with code 3.
        report: The reports to write.
        sweep: Settings of models and datasets, and seeds, to vary: a mapping of paths to lists, of
            which every combination is run, or a list of settings.
    """

    name: str
    seed: Seed = DEFAULT_SEED
    seeds: Annotated[tuple[Seed, ...], MinLen(1), MaxLen(1_000)] | None = None
    dataset: Entry
    split: Entry = None
    queries: Entry = "users"
    device: Device = "auto"
    k: Annotated[int, Gt(0), Le(10_000)] = 10
    models: Annotated[tuple[Entry, ...], MinLen(1), MaxLen(1_000)]
    labels: Annotated[tuple[Entry, ...], MaxLen(1_000)] = ()
    metrics: Annotated[tuple[Entry, ...], MaxLen(1_000)] = ()
    tests: Annotated[tuple[Entry, ...], MaxLen(1_000)] = ()
    feedback: FeedbackSpec | None = None
    checks: Annotated[tuple[Entry, ...], MaxLen(1_000)] = ()
    report: ReportSpec = ReportSpec()
    sweep: Entry = None


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
