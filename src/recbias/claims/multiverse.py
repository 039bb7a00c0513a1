"""How far a claim holds: every defensible combination of choices is run, as one plan.

The universes share their stages by address, so that only what differs is computed; their values by
unit are compared in one joint test.
"""

from __future__ import annotations

import copy
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.api import create_executor, observe, open_store, use_network
from recbias.config.experiment import Experiment, load_document
from recbias.config.source import find_spec, place_value, read_spec, split_path
from recbias.config.specs import ClaimSpec
from recbias.core.dataset import AnyArray, FloatArray
from recbias.core.errors import (
    Contradiction,
    Faults,
    MissingEvidence,
    OutOfRange,
    StageError,
    UserError,
    WrongType,
)
from recbias.core.files import compute_digest, digest_file, has_file
from recbias.core.measures import compute_wilson_interval
from recbias.core.text import normalize_name, suggest
from recbias.formats.yaml import Document
from recbias.registry import REGISTRIES
from recbias.runner.address import digest_package
from recbias.runner.checks import check_inputs
from recbias.runner.execute import (
    Executor,
    Rehearsal,
    execute_plans,
)
from recbias.runner.folder import check_latest, new_run_folder
from recbias.runner.plan import Observer, Plan, RunOptions, Spec, take_options
from recbias.runner.planner import make_plan
from recbias.runner.store import Fingerprints, Store
from recbias.runner.verdicts import (
    ClaimValues,
    adjust_claim,
    decide_claim,
    describe_claim,
    describe_option,
    stack_values,
)
from recbias.statistics.multiverse import (
    JointTest,
    compute_joint_test,
    decompose_variance,
    estimate,
)

KEY = "multiverse"
_SAMPLE = "sample"
_MOST_UNIVERSES = 1_000
"""The largest number of universes that are run."""

_OF_THE_CLAIM = ("metric", "target", "by", "groups", "model", "against", "correction")
"""Choices that are keys of the claim."""

_UNUSED = ("checks", "tests", "report", "track", "claim", KEY)
"""Keys of a spec that no universe needs."""

_KINDS = ("equivalent", "uncertain", "different")

_CLAIM = "add claim: {metric: nDCG, model: A, against: B, direction: higher}"

FILES, _CONTENT = ("universes.csv", "choices.csv"), "multiverse.json"
_BLANK = {name: [""] for name in ("estimate", "ci_low", "ci_high", "p")}


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
    def labels(self) -> list[str]:
        """The options as text."""
        return [*map(describe_option, self.options)]

    @property
    def steps(self) -> list[str]:
        """The path of the setting in a spec."""
        if self.name in _OF_THE_CLAIM:
            return ["claim", self.name]
        steps = split_path(self.name)
        return ["dataset", *steps] if steps[0] == "filters" else steps


@dataclass(frozen=True, eq=False)
class _Universe:
    """One combination of options, by the position of each: its plan, or why it has none."""

    options: tuple[int, ...]
    plan: Plan | None = None
    error: UserError | None = None

    @property
    def claim(self) -> ClaimSpec | None:
        """Its claim."""
        return self.plan.experiment.claim if self.plan else None

    @property
    def problem(self) -> str:
        """Why it has no plan."""
        return Faults([self.error]).faults[0].message if self.error else ""


@dataclass(frozen=True, eq=False)
class MultiversePlan:
    """The universes of a spec.

    Args:
        n_combinations: The number of all combinations, of which ``universes`` may be a sample.
    """

    name: str
    choices: Sequence[Choice]
    universes: Sequence[_Universe]
    n_combinations: int
    store: Store

    @property
    def plans(self) -> list[Plan]:
        """The plans of the universes that have one."""
        return [universe.plan for universe in self.universes if universe.plan is not None]

    @property
    def claim(self) -> ClaimSpec:
        """The claim of the first universe that has a plan."""
        return next(universe.claim for universe in self.universes if universe.claim)

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
                    [each.options, each.problem, each.plan and each.plan.spec_digest]
                    for each in self.universes
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
            "failing": len(self.universes) - len(self.plans),
            "choices": {choice.name: choice.labels for choice in self.choices},
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


def _load_universe(changed: Document) -> Experiment:
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
    if claim.correction != "none":
        return experiment
    named = {normalize_name(label) for label in (claim.model, claim.against) if label}
    models = [each for each in experiment.models if normalize_name(each.label) in named]
    return replace(experiment, models=tuple(models))


def plan_multiverse(spec: Spec, options: RunOptions) -> MultiversePlan:
    """Return the universes of a spec, each with its plan, without running them.

    A universe whose options exclude each other has a problem instead of a plan. An option that is
    a fault in every universe is an error.
    """
    with use_network(options):
        return _plan_universes(spec, replace(options, observer=None))


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
    fingerprints, universes = Fingerprints(store), list[_Universe]()
    for row in _combine(sizes, sample, seed if isinstance(seed, int) else 0):
        try:
            experiment = _load_universe(_change(document, choices, row))
            plan = make_plan(experiment, options, fingerprints)
            _require_units(plan)
        except UserError as error:
            universes.append(_Universe(row, error=error))
        else:
            universes.append(_Universe(row, plan))
    _refuse_common_faults(universes, sizes)
    name = str(document.data.get("name") or "")
    planned = MultiversePlan(name, choices, universes, total, store)
    check_inputs(planned.plans[0], Rehearsal(store, Observer()))
    return planned


def _refuse_common_faults(universes: Sequence[_Universe], sizes: Sequence[int]) -> None:
    """Raise the faults of universes if all, or all with one option, have them."""
    options = [(at, option) for at, size in enumerate(sizes) for option in range(size)]
    parts = [[each for each in universes if each.options[at] == option] for at, option in options]
    for part in (universes, *parts):
        errors = [each.error for each in part if each.error is not None]
        if not errors or len(errors) < len(part):
            continue
        lists = [Faults([error]).faults for error in errors]
        counts = Counter(str(fault) for each in lists for fault in each)
        common = [fault for fault in lists[0] if counts[str(fault)] == len(lists)]
        raise Faults(common or lists[0])


def _require_units(plan: Plan) -> None:
    if len(plan.experiment.datasets) > 1:
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
        return _load_multiverse(unchanged)
    chains = create_executor(options)
    with observe(options) as observer, chains.prepare(first):
        executor, problems = execute_plans(planned.plans, planned.store, observer, chains)
    result = _evaluate(planned, executor, problems)
    with new_run_folder(options.results_folder, own) as folder:
        _write(replace(result, folder=folder.temporary), planned)
        return _load_multiverse(folder.publish())


def _load_multiverse(folder: Path) -> Multiverse:
    """Return the result in a folder that ``multiverse`` wrote."""
    content = json.loads((folder / _CONTENT).read_text(encoding="utf-8"))
    texts = dict.fromkeys([*content["choices"], "verdict", "problem"], str)
    universes = pd.read_csv(
        folder / FILES[0], dtype=texts, keep_default_na=False, na_values=_BLANK
    )
    choices = pd.read_csv(folder / FILES[1])
    return Multiverse(folder.resolve(), content["claim"], universes, choices, content["summary"])


def _is_result_of(folder: Path, address: str) -> bool:
    try:
        content = json.loads((folder / _CONTENT).read_text(encoding="utf-8"))
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
        "choices": {choice.name: choice.labels for choice in planned.choices},
        "kinds": {choice.name: choice.kind for choice in planned.choices},
        "summary": result.summary,
        "digests": {name: digest_file(folder / name) for name in files},
    }
    text = json.dumps(described, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / _CONTENT).write_text(text + "\n", encoding="utf-8")


# ---- what they say ----


def _evaluate(
    planned: MultiversePlan, executor: Executor, problems: Mapping[int, str]
) -> Multiverse:
    """Return the estimates of all universes, and what they say about the claim."""
    values, found, families = ClaimValues(executor), dict[int, Any](), list[list[float]]()
    reasons = [each.problem or problems.get(id(each.plan), "") for each in planned.universes]
    for at, universe in enumerate(planned.universes):
        if universe.plan is None or universe.claim is None or reasons[at]:
            continue
        try:
            own = values.read_claim(universe.plan, universe.claim)
            families.append(values.read_family(universe.plan, universe.claim))
            found[at] = own
        except (UserError, StageError) as error:
            reasons[at] = getattr(error, "message", str(error))
    if not found:
        raise StageError(f"every universe failed: {next(filter(None, reasons))}")
    claim, rows = planned.claim, [*found]
    contrasts = stack_values([*found.values()], len(values.ids), claim)
    estimates = estimate(contrasts)
    claims = [planned.universes[row].claim or claim for row in rows]
    numbers = {
        "estimate": estimates.value,
        "ci_low": estimates.ends[0],
        "ci_high": estimates.ends[1],
        "p": [*map(adjust_claim, estimates.p, families, claims)],
        "n": estimates.n,
    }
    options = np.array([universe.options for universe in planned.universes], dtype=np.int64)
    table = pd.DataFrame({"universe": np.arange(1, len(options) + 1)})
    for choice, column in zip(planned.choices, options.T, strict=True):
        table[choice.name] = np.array(choice.labels, dtype=object)[column]
    table = table.join(pd.DataFrame(numbers, index=rows)).fillna({"n": 0}).astype({"n": np.int64})
    sign = 1.0 if claim.direction == "higher" else -1.0
    pairs = table[["estimate", "p"]].to_numpy()
    table["verdict"] = [decide_claim(sign * value, p, claim.alpha) for value, p in pairs]
    table["problem"] = reasons
    is_pooled = [choice.kind == "equivalent" for choice in planned.choices]
    pooled = (options[rows][:, np.logical_not(is_pooled)] == 0).all(axis=1)
    joint = JointTest({}, {}, 0)
    if pooled.any():
        rng = np.random.default_rng(int(compute_digest(claim.model)[:8], 16))
        joint = compute_joint_test(contrasts.select(np.flatnonzero(pooled)), rng, higher=sign > 0)
    names = [choice.name for choice in planned.choices]
    scale = estimates.value
    if "metric" in names:  # metrics have scales of their own
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = estimates.value / estimates.error / np.sqrt(estimates.n)
    others = [name for name in names if name in _OF_THE_CLAIM]
    stated = describe_claim(claim) + (f", also with other {', '.join(others)}" if others else "")
    summary = _summarize(planned, table, joint, int(pooled.sum()))
    return Multiverse(Path(), stated, table, _share_out(scale, options[rows], names), summary)


def _share_out(values: FloatArray, options: AnyArray, names: Sequence[str]) -> pd.DataFrame:
    """Return the share of the variance that each choice and pair explains, the largest first."""
    defined = np.isfinite(values)
    parts = []
    if np.count_nonzero(defined) > 2:
        parts = decompose_variance(values[defined], options[defined])
    rows = [
        (" and ".join(names[at] for at in part.choices), part.share, part.ci_low, part.ci_high)
        for part in parts
    ]
    table = pd.DataFrame(rows, columns=["choice", "share", "ci_low", "ci_high"])
    return table.sort_values("share", ascending=False, ignore_index=True)


def _summarize(
    planned: MultiversePlan, table: pd.DataFrame, joint: JointTest, n_pooled: int
) -> dict[str, Any]:
    """Return the first line, and the numbers behind it."""
    verdicts, names = table["verdict"], [choice.name for choice in planned.choices]
    counts, is_reversed = Counter(verdicts), verdicts == "reversed"
    n, n_holds, n_all = len(table) - counts["failed"], counts["holds"], planned.n_combinations
    n_sure = int((is_reversed & (table["p"] < planned.claim.alpha)).sum())
    if not n:
        raise StageError("the claim has no estimate in any universe")
    in_direction = (verdicts == "not significant") & (table["estimate"] != 0)
    text = f"Holds in {n_holds:,} of {n:,} defensible settings ({100 * n_holds / n:.0f} %"
    low = high = None
    if len(table) < n_all:  # a sample: of a finite number, whose interval is narrower
        size = n * max(n_all - 1, 1) / max(n_all - n, 1)
        low, high = compute_wilson_interval(n_holds / n, size)
        text += f", {100 * low:.0f} to {100 * high:.0f}"
    text += f"); reversed in {_count(counts['reversed'])}"
    if counts["reversed"]:
        text += f" (significantly in {_count(n_sure)})"
        if shared := _find_shared(table[is_reversed], names, planned.choices):
            text += f", all with {shared}"
    if counts["failed"]:
        text += f"; {counts['failed']:,} more failed"
    if (p := joint.p.get("mean_z")) is not None:
        bound = "at most " if p <= 1 / (joint.n_permutations + 1) else ""
        text += f"; joint p {bound}{p:.2g}"
    return {
        "verdict": f"{text}.",
        "universes": len(table),
        "combinations": n_all,
        "holds": n_holds,
        "not_significant": counts["not significant"],
        "reversed": counts["reversed"],
        "failed": counts["failed"],
        "reversed_significantly": n_sure,
        "claimed_direction": n_holds + int(in_direction.sum()),
        "share": n_holds / n,
        "share_low": low,
        "share_high": high,
        "median_estimate": float(table["estimate"].median()),
        "joint_p": joint.p,
        "joint_statistics": joint.statistics,
        "permutations": joint.n_permutations,
        "pooled": n_pooled,
        "turns": _find_turn(table, names),
    }


def _count(n: int) -> str:
    return f"{n:,}" if n else "none"


def _find_shared(rows: pd.DataFrame, names: Sequence[str], choices: Sequence[Choice]) -> str:
    """Return the first option that all universes have, where others are possible; else blank."""
    shared = (
        f"{name}: {rows[name].iloc[0]}"
        for name, choice in zip(names, choices, strict=True)
        if len(choice.options) > 1 and len({*rows[name]}) == 1
    )
    return next(shared, "")


def _find_turn(table: pd.DataFrame, names: list[str]) -> dict[str, list[str]] | None:
    """Return the fewest changes of the first universe that turn its verdict, as old and new.

    Turned is reversed where it holds, and else not held; None if no universe is.
    """
    base = table.iloc[0]
    goals = ("reversed", "not significant") if base["verdict"] == "holds" else ("holds",)
    for goal in goals:
        turned = table[table["verdict"] == goal]
        if len(turned):
            n_changed = (turned[names] != base[names]).sum(axis=1)
            nearest = turned.iloc[int(np.argmin(n_changed.to_numpy()))]
            pairs = {name: [str(base[name]), str(nearest[name])] for name in (*names, "verdict")}
            return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    return None
