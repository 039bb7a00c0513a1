"""The hyperparameter search of a model: its trials, and the stage that selects the best."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from recbias.config.plugin_spec import Dimension
from recbias.core.digests import to_canonical_json
from recbias.core.errors import StageError, UserError
from recbias.core.measurements.scores import Direction, to_loss
from recbias.runner.addresses import assign_address, join_address
from recbias.runner.source_digest import digest_sources
from recbias.runner.stage import Stage
from recbias.runner.stages.model import AnswerQueries, FitModel
from recbias.runner.stages.rerank import RerankLists
from recbias.runner.tuning.importances import estimate_importances
from recbias.runner.tuning.rerank_trial import AnswerValidationQueries
from recbias.runner.tuning.run_trial import RunTrial, apply_settings, can_prune
from recbias.runner.tuning.search_space import count_combinations
from recbias.runner.tuning.trial import Trial, load_trials, nan_to_none, none_to_nan, save_trials

FILE = "importances.json"
"""The file of a stored search beside its trials."""

IMPORTANCES = ("dataset", "model", "seed", "fold", "setting", "importance")
"""The columns of ``importances.csv``."""


TunedWork: TypeAlias = FitModel | AnswerQueries | RerankLists | AnswerValidationQueries
"""The work of a stage whose model may be searched."""


@dataclass(frozen=True)
class SearchResult:
    """The result of a search; the first of equally good trials is the best.

    Args:
        importances: The share of the variance that each setting explains, or NaN.
    """

    best: Trial
    trials: tuple[Trial, ...]
    importances: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SelectBestTrial:
    """Select the best trial and estimate the importance of each setting."""

    direction: Direction
    space: tuple[Dimension, ...] = ()
    seed: int = 0

    def __call__(self, *trials: Trial) -> SearchResult:
        """Return the best of the complete trials; raise an error if all of them failed."""
        done = [trial for trial in trials if trial.state == "done"]
        if not done and any(trial.excluded for trial in trials):
            n_excluded = sum(trial.excluded for trial in trials)
            message = f"{n_excluded} of {len(trials)} trials increase the perplexity too much, "
            message += "and no other has a value"
            remedy = "search smaller weights and learning rates, or raise max_perplexity_increase"
            raise UserError(message, where="tune.max_perplexity_increase", remedy=remedy)
        if not done:
            failures = [trial.failure for trial in trials if trial.failure is not None]
            message = f"all {len(failures)} trials failed, the first with: {failures[0].message}"
            if all(failure.user for failure in failures):
                raise UserError(message, remedy="change the search space")
            raise StageError(message)
        best = min(done, key=lambda trial: to_loss(trial.value, self.direction))
        importances = estimate_importances(self.space, trials, self.direction, self.seed)
        return SearchResult(best, trials, importances)


@dataclass(frozen=True)
class UseBestSettings:
    """Execute a stage with the best settings of a search."""

    work: TunedWork
    space: tuple[Dimension, ...]

    def __call__(self, search: SearchResult, *inputs: Any) -> Any:
        """Return the result of the stage."""
        model = apply_settings(self.work.model, self.space, search.best.settings)
        return replace(self.work, model=model)(*inputs)


def plan_trials(first: Stage, work: RunTrial, identity: Mapping[str, object]) -> tuple[Stage, ...]:
    """Return one stage per trial.

    Trials form batches of ``tune.parallel``. A trial is sampled from the trials of earlier
    batches, so the trials of one batch can run at the same time with the same result. The address
    of a trial includes those of the batch before, and so of all earlier batches. An exhaustive
    search ends with the last combination.

    Args:
        first: What trials share: their inputs but for earlier trials, keys, files and location.
        work: Runs a trial.
        identity: What distinguishes this search from others, except the number of its trials.
    """
    shared, batch_size, n_trials = first.inputs, work.tune.parallel, work.tune.trials
    pruning = work.tune.pruning if can_prune(work.tune) else "none"
    search_identity = {**identity, "pruning": pruning}
    if work.exhaustive:
        search_identity["covering"] = True
        n_trials = min(n_trials, count_combinations(work.tune.space) or n_trials)
    stages, code = list[Stage](), digest_sources(work)
    libraries = (*work.model.libraries, "optuna")
    before, after = _split_identity(search_identity)
    for number in range(1, n_trials + 1):
        earlier = stages[: (number - 1) // batch_size * batch_size]
        counted = (*shared, *earlier[-batch_size:])
        digest = join_address(first.kind, f"{before}{number}{after}", counted, libraries, code)
        stages.append(
            Stage(  # ``replace`` takes several times as long
                first.kind,
                f"trial {number} of {first.keys.model}",
                digest,
                replace(work, number=number),
                (*shared, *earlier),
                first.keys,
                spec_location=first.spec_location,
                files=first.files,
                devices=first.devices,
                subject=first.subject,
                settings=first.settings,
            )
        )
    return tuple(stages)


def _split_identity(identity: Mapping[str, object]) -> tuple[str, str]:
    """Return what is before and behind the number of a trial in its identity, as canonical JSON.

    >>> _split_identity({"model": "A", "seed": 1})
    ('{"model":"A","number":', ',"seed":1}')
    """
    before = to_canonical_json({key: identity[key] for key in identity if key < "number"})
    after = to_canonical_json({key: identity[key] for key in identity if key > "number"})
    start, end = (text[1:-1] for text in (before, after))
    return f'{{{start}{"," if start else ""}"number":', f"{',' if end else ''}{end}}}"


def plan_search(trials: tuple[Stage, ...], work: RunTrial) -> Stage:
    """Return the stage that selects the best trial."""
    tune, keys, location = work.tune, trials[0].keys, trials[0].spec_location
    choose = SelectBestTrial(tune.direction, tune.space, work.derive_seed("importances"))
    return assign_address(
        Stage("search", f"search {keys.model}", "", choose, trials, keys, location),
        {"direction": choose.direction},
        inputs=trials[-tune.parallel :],
        libraries=("optuna", "scikit-learn"),
    )


def make_importance_rows(
    search: SearchResult, fit_keys: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the rows of ``importances.csv``."""
    return [
        {**fit_keys, "setting": name, "importance": share}
        for name, share in search.importances.items()
    ]


def save_search(search: SearchResult, folder: Path) -> None:
    """Write a search to a folder: the best trial, all trials, and the importances."""
    save_trials((search.best, *search.trials), folder)
    shares = {name: nan_to_none(share) for name, share in search.importances.items()}
    (folder / FILE).write_text(json.dumps(shares, ensure_ascii=False), encoding="utf-8")


def load_search(folder: Path) -> SearchResult:
    """Read the search of a folder."""
    best, *trials = load_trials(folder)
    shares = json.loads((folder / FILE).read_text(encoding="utf-8"))
    importances = {name: none_to_nan(share) for name, share in shares.items()}
    return SearchResult(best, tuple(trials), importances)
