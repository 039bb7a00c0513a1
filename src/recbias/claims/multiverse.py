"""How far a claim holds: every defensible combination of choices is run, as one plan.

The universes share their stages by address, so that only what differs is computed; their values by
unit are compared in one joint test.
"""

from __future__ import annotations

import copy
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.api import create_executor, open_store
from recbias.config.experiment import Experiment, load_document
from recbias.config.source import find_spec, place_value, read_spec, split_path
from recbias.config.specs import ClaimSpec
from recbias.core.dataset import AnyArray
from recbias.core.errors import (
    Contradiction,
    Faults,
    MissingEvidence,
    OutOfRange,
    StageError,
    UserError,
    WrongType,
)
from recbias.core.files import compute_digest, digest_file, forbid_network, has_file
from recbias.core.measures import compute_wilson_interval
from recbias.core.text import normalize_name, suggest
from recbias.formats.yaml import Document
from recbias.progress import is_notebook, open_observer
from recbias.registry import REGISTRIES
from recbias.runner.address import digest_package
from recbias.runner.checks import check_inputs
from recbias.runner.claims import (
    ClaimValues,
    adjust_claim,
    decide,
    describe_claim,
    describe_option,
    stack_values,
)
from recbias.runner.execute import (
    Executor,
    Rehearsal,
    execute_plans,
    look_up_results,
)
from recbias.runner.folder import check_latest, new_run_folder
from recbias.runner.options import RunOptions, Silent, Spec, take_options
from recbias.runner.plan import Plan
from recbias.runner.planner import make_plan
from recbias.runner.store import Fingerprints, Store
from recbias.statistics.multiverse import (
    Contrasts,
    JointTest,
    compute_joint_test,
    decompose_variance,
    estimate,
)

KEY = "multiverse"
_SAMPLE = "sample"
_MOST_UNIVERSES = 1_000
"""The largest number of universes that are run."""

_OF_THE_CLAIM = ("metric", "by", "groups", "model", "against", "correction")
"""Choices that are keys of the claim."""

_UNUSED = ("checks", "tests", "report", "track", "claim", KEY)
"""Keys of a spec that no universe needs."""

_KINDS = ("equivalent", "uncertain", "different")

_CLAIM = "add claim: {metric: nDCG, model: A, against: B, direction: higher}"

FILES = ("universes.csv", "choices.csv")
_SHARE = ("share", "ci_low", "ci_high")


@dataclass(frozen=True)
class Choice:
    """One decision of an analyst, with the options that can be defended.

    Args:
        name: As written: ``filters``, ``k``, ``models.ItemKNN.neighbors``.
        kind: ``equivalent`` options measure the same effect, and are pooled in the joint test; of
            ``uncertain`` and ``different`` ones only the first is (Del Giudice and Gangestad,
            "A traveler's guide to the multiverse", 2021).
    """

    name: str
    options: tuple[Any, ...]
    kind: str = "equivalent"

    @property
    def labels(self) -> tuple[str, ...]:
        """The options as text."""
        return tuple(map(describe_option, self.options))

    @property
    def steps(self) -> list[str]:
        """The path of the setting in a spec."""
        if self.name in _OF_THE_CLAIM:
            return ["claim", self.name]
        steps = split_path(self.name)
        return ["dataset", *steps] if steps[0] == "filters" else steps


@dataclass(frozen=True, eq=False)
class _Universe:
    """One combination of options, by the position of each, and its plan."""

    options: tuple[int, ...]
    claim: ClaimSpec | None = None
    plan: Plan | None = None
    problem: str = ""


@dataclass(frozen=True, eq=False)
class MultiversePlan:
    """The universes of a spec.

    Args:
        n_combinations: The number of all combinations, of which ``universes`` may be a sample.
    """

    name: str
    claim: ClaimSpec
    choices: tuple[Choice, ...]
    universes: tuple[_Universe, ...]
    n_combinations: int
    store: Store

    @property
    def plans(self) -> list[Plan]:
        """The plans of the universes that have one."""
        return [universe.plan for universe in self.universes if universe.plan is not None]

    @cached_property
    def stages(self) -> dict[str, Any]:
        """Every stage once, by its address."""
        return {stage.digest: stage for plan in self.plans for stage in plan.stages}

    @property
    def address(self) -> str:
        """The digest of everything that the results depend on."""
        return compute_digest(
            {
                "claim": vars(self.claim),
                "choices": [[choice.name, choice.kind, *choice.labels] for choice in self.choices],
                "universes": [
                    [
                        universe.options,
                        universe.problem,
                        universe.plan and universe.plan.spec_digest,
                    ]
                    for universe in self.universes
                ],
                "stages": sorted(self.stages),
                "code": digest_package(),
            }
        )

    def describe(self) -> dict[str, Any]:
        """Return what ``recbias plan`` says."""
        stored = [digest for digest in self.stages if self.store.has(digest)]
        seconds = [self.store.record(digest) for digest in stored]
        return {
            "universes": len(self.universes),
            "combinations": self.n_combinations,
            "failing": sum(universe.plan is None for universe in self.universes),
            "choices": {choice.name: [*choice.labels] for choice in self.choices},
            "stages": len(self.stages),
            "stages_unshared": sum(len(plan.stages) for plan in self.plans),
            "stages_stored": len(stored),
            "stored_seconds": round(sum(record.seconds for record in seconds if record), 3),
        }


@dataclass(frozen=True, eq=False)
class Multiverse:
    """The universes of a claim, and what they say about it.

    Args:
        folder: The folder of the files.
        claim: The claim in words.
        universes: One row a universe: its options, ``estimate``, ``ci_low``, ``ci_high``, ``p``,
            ``n`` and ``verdict``: ``holds`` (the claimed direction, significantly), ``not
            significant`` (the claimed direction), ``reversed``, or ``failed`` with ``problem``.
        choices: The share of the variance of the estimate that each choice and pair explains.
        summary: Counts, the joint test, and the nearest universe where the claim turns.
    """

    folder: Path
    claim: str
    universes: pd.DataFrame
    choices: pd.DataFrame
    summary: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """The first line: in how many universes the claim holds."""
        return str(self.summary["verdict"])

    def __str__(self) -> str:
        """Return the verdict."""
        return self.verdict

    def _repr_html_(self) -> str:
        return (self.folder / "report.html").read_text(encoding="utf-8")


# ---- universes ----


def _read_choices(document: Document) -> tuple[list[Choice], int | None]:
    """Return the choices of a spec, and the size of the sample."""
    raw = document.data.get(KEY)
    if not isinstance(raw, dict) or not set(raw) - {_SAMPLE}:
        remedy = "write multiverse: {k: [5, 10, 20], split: [...]}"
        raise document.error((KEY,), "must be a mapping of choices", remedy=remedy, kind=WrongType)
    choices = [*_build_choices(document, {k: v for k, v in raw.items() if k != _SAMPLE})]
    sample = raw.get(_SAMPLE)
    if sample is not None and (
        not isinstance(sample, int) or isinstance(sample, bool) or sample < 1
    ):
        document.add_fault((KEY, _SAMPLE), "must be a number of universes", kind=OutOfRange)
    document.refuse()
    return choices, sample


def _build_choices(document: Document, raw: Mapping[str, Any]) -> Iterator[Choice]:
    for name, written in raw.items():
        where, is_marked = (KEY, name), isinstance(written, dict)
        values = written.get("values") if is_marked else written
        kind = written.get("kind", _KINDS[0]) if is_marked else _KINDS[0]
        if not isinstance(values, list) or not values:
            remedy = f"write {name}: [...], or {name}: {{values: [...], kind: different}}"
            document.add_fault(where, "must be a list of options", remedy=remedy, kind=WrongType)
        elif kind not in _KINDS:
            remedy = suggest(str(kind), _KINDS)
            document.add_fault(where, f"has an unknown kind {kind!r}", remedy=remedy)
        elif len({json.dumps(option, sort_keys=True) for option in values}) < len(values):
            document.add_fault(where, "has an option twice", kind=Contradiction)
        else:
            yield Choice(name, tuple(values), kind)


def _combine(sizes: Sequence[int], sample: int | None, seed: int) -> list[tuple[int, ...]]:
    """Return the options of each universe, the first with the first option of each choice.

    They are all combinations, or a sample with each option of a choice about equally often.

    >>> _combine([2, 2], None, 0)
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    total = math.prod(sizes)
    if sample is None or sample >= total:
        return [tuple(map(int, row)) for row in np.ndindex(*sizes)]
    rng = np.random.default_rng(seed)
    chosen = {(0,) * len(sizes): None}
    while len(chosen) < sample:
        orders = [rng.permutation(size) for size in sizes]
        columns = [rng.permutation(np.resize(order, sample)) for order in orders]
        for row in zip(*map(np.ndarray.tolist, columns), strict=True):
            if len(chosen) < sample:
                chosen.setdefault(row)
    return sorted(chosen)


def _change(document: Document, choices: Sequence[Choice], options: Sequence[int]) -> Document:
    """Return the spec of a universe."""
    changed = copy.deepcopy(document)
    for choice, option in zip(choices, options, strict=True):
        where = (KEY, choice.name)
        if choice.steps == ["seed"]:
            changed.data.pop("seeds", None)
        value = Document(copy.deepcopy(choice.options[option]))
        value.values[()] = document.mark((*where, option))
        try:
            place_value(changed, choice.steps, value, document.mark(where, key=True))
        except UserError as error:
            raise document.error(
                where, error.message, remedy=error.remedy, kind=type(error), key=True
            ) from error
    return changed


def _load_universe(changed: Document) -> tuple[Experiment, ClaimSpec]:
    """Return the experiment of a universe, with the models that its claim is about."""
    claim_entry = changed.data.get("claim")
    metric = claim_entry.get("metric") if isinstance(claim_entry, dict) else None
    data = {key: value for key, value in changed.data.items() if key not in _UNUSED}
    changed.data = data | {"claim": claim_entry, "metrics": [metric]}
    changed.forget(("metrics",))
    for marks in (changed.keys, changed.values):
        own = {path[2:]: mark for path, mark in marks.items() if path[:2] == ("claim", "metric")}
        marks.update({("metrics", 0, *path): mark for path, mark in own.items()})
    experiment = load_document(changed, REGISTRIES)
    claim = experiment.claim
    if claim is None:
        raise changed.error(("claim",), "is missing", remedy=_CLAIM)
    labels = {normalize_name(model.label): model for model in experiment.models}
    names = [claim.model, *filter(None, [claim.against])]
    chosen = [labels[normalize_name(name)] for name in names]
    if claim.correction == "none":
        experiment = replace(
            experiment, models=tuple(model for model in experiment.models if model in chosen)
        )
    return experiment, claim


def plan_multiverse(spec: Spec, options: RunOptions) -> MultiversePlan:
    """Return the universes of a spec, each with its plan, without running them.

    A universe whose options exclude each other has a problem instead of a plan. An option that is
    a fault in every universe is an error.
    """
    with forbid_network() if options.offline else nullcontext():
        return _plan_universes(spec, options)


def _plan_universes(spec: Spec, options: RunOptions) -> MultiversePlan:
    store = open_store(options.results_folder / "store", options.store)
    source = spec if isinstance(spec, Mapping) else find_spec(Path(spec))
    document = read_spec(source, options.overrides)
    choices, sample = _read_choices(document)
    if document.data.get("claim") is None:
        message = "a multiverse examines a claim: the spec has none"
        raise document.error((KEY,), message, remedy=_CLAIM, key=True)
    sizes = [len(choice.options) for choice in choices]
    total = math.prod(sizes)
    if min(sample or total, total) > _MOST_UNIVERSES:
        message = f"has {total:,} combinations, more than {_MOST_UNIVERSES:,}"
        raise document.error((KEY,), message, remedy=f"add {_SAMPLE}: 200", kind=OutOfRange)
    seed = document.data.get("seed")
    combined = _combine(sizes, sample, seed if isinstance(seed, int) else 0)
    fingerprints, universes = Fingerprints(store), list[_Universe]()
    faults: list[UserError] = []
    claims: list[ClaimSpec] = []
    for row in combined:
        try:
            experiment, own = _load_universe(_change(document, choices, row))
            plan = make_plan(experiment, replace(options, observer=None), fingerprints)
            _require_units(plan)
        except UserError as error:
            faults.append(error)
            first = Faults([error]).faults[0]
            universes.append(_Universe(row, problem=first.message))
        else:
            claims.append(own)
            universes.append(_Universe(row, own, plan))
    _refuse_common_faults(universes, faults, choices)
    name = str(document.data.get("name") or "")
    planned = MultiversePlan(name, claims[0], tuple(choices), tuple(universes), total, store)
    check_inputs(planned.plans[0], Rehearsal(store, Silent()))
    return planned


def _refuse_common_faults(
    universes: Sequence[_Universe], faults: Sequence[UserError], choices: Sequence[Choice]
) -> None:
    """Raise the faults of universes if all, or all with one option, have them."""
    by_universe = iter(faults)
    errors = {universe.options: next(by_universe) for universe in universes if universe.problem}
    if len(errors) == len(universes):
        raise _merge_faults(errors.values())
    for at, choice in enumerate(choices):
        for option in range(len(choice.options)):
            rows = [universe.options for universe in universes if universe.options[at] == option]
            if rows and all(row in errors for row in rows):
                raise _merge_faults(errors[row] for row in rows)


def _merge_faults(errors: Iterable[UserError]) -> Faults:
    """Return the faults that all errors have, each once; without any those of the first."""
    lists = [Faults([error]).faults for error in errors]
    counts = Counter(str(fault) for each in lists for fault in each)
    common = [fault for fault in lists[0] if counts[str(fault)] == len(lists)]
    return Faults(common or lists[0])


def _require_units(plan: Plan) -> None:
    experiment = plan.experiment
    if len(experiment.datasets) > 1:
        message = "a universe has one dataset"
        raise Contradiction(message, where="dataset", remedy="make dataset a choice")
    for metric, model, missing in plan.undefined:
        message = f"{metric.label} is undefined for {model.label}: it provides no {missing}"
        raise MissingEvidence(message, where="claim.metric")


# ---- running them ----


@take_options(RunOptions)
def multiverse(spec: Spec, options: RunOptions) -> Multiverse:
    """Run every universe of a spec with ``claim`` and ``multiverse``; see ``recbias.run``.

    Stages that universes share are computed once, and are those of ``recbias.run``. A universe
    that fails is counted.

    Returns:
        The universes, the joint test, and which choice decides.

    Raises:
        UserError: The spec has a fault, or an option has it in every universe.
        StageError: Every universe failed.

    Example:
        result = recbias.multiverse("claim.yaml")
        result.universes.groupby("verdict").size()
    """
    planned = plan_multiverse(spec, options)
    first = planned.plans[0]
    name = planned.name if planned.name.endswith(KEY) else f"{planned.name}-{KEY}"
    own = replace(
        first, experiment=replace(first.experiment, name=name), spec_digest=planned.address
    )
    check_latest(options.results_folder, own)
    planned.store.prepare()
    unchanged = options.results_folder / name / "latest"
    if not options.fresh and _is_result_of(unchanged, planned.address):
        return load_multiverse(unchanged)
    shows = is_notebook() if options.progress is None else options.progress
    observer = options.observer
    with (
        forbid_network() if options.offline else nullcontext(),
        nullcontext(observer) if observer else open_observer(quiet=not shows) as displayed,
    ):
        for plan in planned.plans:
            look_up_results(plan, planned.store)
        chains = create_executor(options.executor, options.workers)
        executor, problems = execute_plans(
            planned.plans, planned.store, displayed, fresh=options.fresh, run_models=chains
        )
    result = _evaluate(planned, executor, problems)
    with new_run_folder(options.results_folder, own) as folder:
        _write(replace(result, folder=folder.temporary), planned)
        return load_multiverse(folder.publish())


def load_multiverse(folder: Path) -> Multiverse:
    """Return the result in a folder that ``multiverse`` wrote."""
    content = json.loads((folder / "multiverse.json").read_text(encoding="utf-8"))
    universes, choices = (
        pd.read_csv(folder / name, keep_default_na=True, na_values=[""]) for name in FILES
    )
    texts = [*content["choices"], "verdict", "problem"]
    universes[texts] = pd.read_csv(
        folder / FILES[0], usecols=texts, dtype=str, keep_default_na=False
    )[texts]
    return Multiverse(folder.resolve(), content["claim"], universes, choices, content["summary"])


def _is_result_of(folder: Path, address: str) -> bool:
    try:
        content = json.loads((folder / "multiverse.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    files = content.get("digests", {})
    return content.get("address") == address and all(
        has_file(folder / name) and digest_file(folder / name) == digest
        for name, digest in files.items()
    )


def _write(result: Multiverse, planned: MultiversePlan) -> None:
    from recbias.reports.pages import write_multiverse

    folder = result.folder
    for name, table in zip(FILES, (result.universes, result.choices), strict=True):
        table.to_csv(folder / name, index=False, lineterminator="\n")
    names = [choice.name for choice in planned.choices]
    write_multiverse(
        folder,
        claim=result.claim,
        summary=result.summary,
        choices=result.choices,
        universes=result.universes,
        names=names,
    )
    files = [*FILES, "report.md", "report.html"]
    described = {
        "claim": result.claim,
        "address": planned.address,
        "choices": {choice.name: [*choice.labels] for choice in planned.choices},
        "kinds": {choice.name: choice.kind for choice in planned.choices},
        "summary": result.summary,
        "digests": {name: digest_file(folder / name) for name in files},
    }
    text = json.dumps(described, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / "multiverse.json").write_text(text + "\n", encoding="utf-8")


# ---- what they say ----


def _evaluate(
    planned: MultiversePlan, executor: Executor, problems: Mapping[int, str]
) -> Multiverse:
    values, found, families = ClaimValues(executor), dict[int, Any](), dict[int, list[float]]()
    reasons = {at: u.problem for at, u in enumerate(planned.universes) if u.plan is None}
    for at, universe in enumerate(planned.universes):
        plan, claim = universe.plan, universe.claim
        if plan is None or claim is None:
            continue
        if problem := problems.get(id(plan)):
            reasons[at] = problem
            continue
        try:
            own = values.read_claim(plan, claim)
            families[at], found[at] = values.read_family(plan, claim), own
        except (UserError, StageError) as error:
            reasons[at] = getattr(error, "message", str(error))
    if not found:
        raise StageError(f"every universe failed: {next(iter(reasons.values()))}")
    rows = np.array([*found])
    contrasts = stack_values([*found.values()], len(values.ids), planned.claim)
    return _summarize(planned, contrasts, rows, reasons, [*families.values()])


def _summarize(
    planned: MultiversePlan,
    contrasts: Contrasts,
    at: AnyArray,
    reasons: Mapping[int, str],
    families: Sequence[Sequence[float]],
) -> Multiverse:
    claim, choices, rows = planned.claim, planned.choices, planned.universes
    options = np.array([universe.options for universe in rows], dtype=np.int64)
    table = pd.DataFrame({"universe": np.arange(1, len(rows) + 1)})
    for column, choice in enumerate(choices):
        table[choice.name] = [choice.labels[row[column]] for row in options]
    estimates = estimate(contrasts)
    low, high = estimates.ends
    p = [
        adjust_claim(own, family, rows[row].claim or claim)
        for row, own, family in zip(at, estimates.p, families, strict=True)
    ]
    columns = {"estimate": estimates.value, "ci_low": low, "ci_high": high, "p": p}
    for name, numbers in columns.items():
        table[name] = pd.Series(numbers, index=at)
    table["n"] = pd.Series(estimates.n, index=at).reindex(table.index, fill_value=0)
    sign = 1.0 if claim.direction == "higher" else -1.0
    table["verdict"] = [
        decide(sign * value, p, claim.alpha) for value, p in table[["estimate", "p"]].to_numpy()
    ]
    table["problem"] = [reasons.get(row, "") for row in range(len(rows))]
    scale = estimates.value
    if any(choice.name == "metric" for choice in choices):  # metrics have scales of their own
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = estimates.value / estimates.error / np.sqrt(estimates.n)
    defined = np.isfinite(scale)
    parts = []
    if np.count_nonzero(defined) > 2:
        parts = decompose_variance(scale[defined], options[at][defined])
    shares = pd.DataFrame(
        {
            "choice": [" and ".join(choices[c].name for c in part.choices) for part in parts],
            **{name: [getattr(part, name) for part in parts] for name in _SHARE},
        }
    ).sort_values("share", ascending=False, ignore_index=True)
    is_pooled = [choice.kind == "equivalent" for choice in choices]
    pooled = (options[at][:, [not each for each in is_pooled]] == 0).all(axis=1)
    rng = np.random.default_rng(int(compute_digest(planned.claim.model)[:8], 16))
    joint = JointTest({}, {}, 0)
    if pooled.any():
        higher = claim.direction == "higher"
        joint = compute_joint_test(contrasts.select(np.flatnonzero(pooled)), rng, higher=higher)
    summary = _describe(planned, table, joint, int(pooled.sum()))
    others = [choice.name for choice in choices if choice.name in _OF_THE_CLAIM]
    stated = describe_claim(claim) + (f", also with other {', '.join(others)}" if others else "")
    return Multiverse(Path(), stated, table, shares, summary)


def _describe(
    planned: MultiversePlan, table: pd.DataFrame, joint: JointTest, n_pooled: int
) -> dict[str, Any]:
    counts = Counter(table["verdict"])
    n = len(table) - counts["failed"]
    is_sample = len(table) < planned.n_combinations
    low, high = (
        _share_interval(counts["holds"], n, planned.n_combinations) if is_sample else (None,) * 2
    )
    turned = _find_turn(table, planned.choices)
    return {
        "verdict": _phrase(planned, table, joint, (low, high)),
        "universes": len(table),
        "combinations": planned.n_combinations,
        **{
            name.replace(" ", "_"): counts[name]
            for name in ("holds", "not significant", "reversed", "failed")
        },
        "reversed_significantly": int(
            ((table["verdict"] == "reversed") & (table["p"] < planned.claim.alpha)).sum()
        ),
        "claimed_direction": counts["holds"]
        + int(((table["verdict"] == "not significant") & (table["estimate"] != 0)).sum()),
        "share": counts["holds"] / n if n else None,
        "share_low": low,
        "share_high": high,
        "median_estimate": float(table["estimate"].median()),
        "joint_p": joint.p,
        "joint_statistics": joint.statistics,
        "permutations": joint.n_permutations,
        "pooled": n_pooled,
        "turns": turned,
    }


def _share_interval(n_holds: int, n: int, n_all: int) -> tuple[float, float]:
    """Return Wilson's interval of a share, for a sample of a finite number of universes."""
    size = n * max(n_all - 1, 1) / max(n_all - n, 1)  # the sample size with the same variance
    return compute_wilson_interval(n_holds / max(n, 1), size)


def _phrase(
    planned: MultiversePlan, table: pd.DataFrame, joint: JointTest, ends: tuple[Any, Any]
) -> str:
    counts = Counter(table["verdict"])
    n = len(table) - counts["failed"]
    between = "" if ends[0] is None else f", {100 * ends[0]:.0f} to {100 * ends[1]:.0f}"
    text = f"Holds in {counts['holds']:,} of {n:,} defensible settings"
    text += f" ({100 * counts['holds'] / n:.0f} %{between})"
    text += f"; reversed in {counts['reversed']:,}" if counts["reversed"] else "; reversed in none"
    if counts["reversed"]:
        is_sure = (table["verdict"] == "reversed") & (table["p"] < planned.claim.alpha)
        n_sure = int(is_sure.sum())
        text += " (significantly in " + (f"{n_sure:,})" if n_sure else "none)")
    if counts["reversed"] and (shared := _find_shared(table, planned.choices)):
        text += f", all with {shared}"
    if counts["failed"]:
        text += f"; {counts['failed']:,} more failed"
    p = joint.p.get("mean_z")
    if p is not None:
        least = 1 / (joint.n_permutations + 1)
        text += f"; joint p {'at most ' if p <= least else ''}{p:.2g}"
    return f"{text}."


def _find_shared(table: pd.DataFrame, choices: Sequence[Choice]) -> str:
    """Return the option that all reversed universes have, and not all others; blank if none."""
    is_reversed = table["verdict"] == "reversed"
    for choice in choices:
        values = table.loc[is_reversed, choice.name].unique()
        if len(values) == 1 and len(choice.options) > 1:
            return f"{choice.name}: {values[0]}"
    return ""


def _find_turn(table: pd.DataFrame, choices: Sequence[Choice]) -> dict[str, list[str]] | None:
    """Return the fewest changes of the first universe that turn its verdict, as old and new.

    Turned is reversed where it holds, and else not held; None if no universe is.
    """
    names = [choice.name for choice in choices]
    base = table.iloc[0]
    goal = table["verdict"] == "reversed"
    if base["verdict"] != "holds":
        goal = table["verdict"] == "holds"
    elif not goal.any():
        goal = table["verdict"] == "not significant"
    if not goal.any():
        return None
    distances = (table.loc[goal, names] != base[names]).sum(axis=1)
    nearest = table[goal].iloc[int(np.argmin(distances.to_numpy()))]
    pairs = {name: [str(base[name]), str(nearest[name])] for name in (*names, "verdict")}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
