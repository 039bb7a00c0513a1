"""What a run was made from and with: data, settings, models, stages, machine and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from recbias.reports import wording
from recbias.reports.run import RunTables
from recbias.reports.wording import Table, format_count, format_setting, tabulate

_BEFORE = "interactions_before_"


class Fact(NamedTuple):
    """A fact about a run, and what it is about."""

    name: str
    text: str


def describe_data(run: RunTables) -> list[Fact]:
    """Return the data and settings of the run: datasets, queries, split, k and seeds."""
    manifest, spec = run.manifest, run.spec
    facts = [fact for dataset in manifest.get("datasets", []) for fact in _describe(dataset, spec)]
    facts += [_describe_queries(queries, run) for queries in manifest.get("queries", [])]
    if limit := manifest.get("limit"):
        queries = format_count(limit, "query")
        facts.append(Fact("Smoke test", f"the first {queries} only (--limit)"))
    if spec.get("split"):
        facts.append(Fact("Split", format_setting(spec["split"])))
    if spec.get("k"):
        facts.append(Fact("List length k", str(spec["k"])))
    if seeds := manifest.get("seeds"):
        facts.append(Fact("Seeds" if len(seeds) > 1 else "Seed", ", ".join(map(str, seeds))))
    return facts


def _describe(dataset: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the size of a dataset and its filters."""
    label, counts = dataset.get("label"), dataset.get("counts") or {}
    sizes = ", ".join(
        f"{number:,} {name.replace('_', ' ')}"
        for name, number in counts.items()
        if number and not name.startswith((_BEFORE, "_"))
    )
    yield Fact("Dataset", f"{label}: {sizes}" if sizes else str(label))
    before = [number for name, number in counts.items() if name.startswith(_BEFORE)]
    if before:
        yield Fact("Before filtering", f"{before[0]:,} interactions")
    if filters := _find_filters(spec, label):
        yield Fact("Filters", format_setting(filters))


def _find_filters(spec: Mapping[str, Any], label: object) -> object:
    value = spec.get("dataset")
    datasets = value if isinstance(value, list) else [value]
    for dataset in datasets:
        if isinstance(dataset, dict) and (len(datasets) == 1 or dataset.get("label") == label):
            return dataset.get("filters")
    return None


def count_asked(run: RunTables) -> str:
    """Return how many users, prompts or sentences are asked: ``600 users``; blank if unknown."""
    counts: dict[str, int] = {}
    for queries in run.manifest.get("queries", []):
        unit = str(queries.get("unit", "query"))
        counts[unit] = max(counts.get(unit, 0), queries.get("asked", 0))
    return ", ".join(format_count(n, unit) for unit, n in counts.items() if n)


def _describe_queries(queries: Mapping[str, Any], run: RunTables) -> Fact:
    """Return the number of queries, the total and the conditions."""
    settings = run.spec.get("queries")
    conditions = dict(settings) if isinstance(settings, dict) else {}
    folds = conditions.pop("folds", 1)
    number, unit = queries.get("asked", 0), queries.get("unit", "query")
    total = _count_queries(run, queries.get("dataset"), unit)
    samples = f"{folds} disjoint samples of " if folds != 1 else ""
    texts = [
        samples + format_count(number, unit),
        f"(of {total:,})" if total > number else "",
        f"of {queries.get('dataset')}" if len(run.manifest["queries"]) > 1 else "",
        format_setting(
            {name: value for name, value in conditions.items() if name != "name" and value}
        ),
    ]
    return Fact("Queries", " ".join(filter(None, texts)))


def _count_queries(run: RunTables, label: object, unit: str) -> int:
    """Return the number of a dataset's units, such as users; 0 if the manifest has none."""
    for dataset in run.manifest.get("datasets", []):
        if dataset.get("label") == label:
            return int((dataset.get("counts") or {}).get(f"{unit}s", 0))
    return 0


def describe_execution(run: RunTables) -> list[Fact]:
    """Return how the run was executed: version, time, memory and platform."""
    manifest = run.manifest
    seconds, memory = manifest.get("seconds"), manifest.get("peak_memory_mb")
    texts = {
        "recbias": manifest.get("recbias"),
        "Started": manifest.get("started"),
        "Duration": wording.format_duration(seconds)
        if isinstance(seconds, (int, float))
        else None,
        "Peak memory": f"{memory:,.0f} MB" if isinstance(memory, (int, float)) else None,
        "Devices": _describe_devices(manifest),
        "Spec digest": manifest.get("spec_digest"),
        "Commit": manifest.get("commit"),
        "Python": manifest.get("python"),
        "Platform": manifest.get("platform"),
    }
    return [Fact(name, str(text)) for name, text in texts.items() if text]


def _describe_devices(manifest: Mapping[str, Any]) -> str:
    """Return each device and precision with the models that compute so; one alone without them.

    >>> models = [{"label": "BPR-MF", "device": "cuda", "precision": "float32"}]
    >>> _describe_devices({"models": models, "gpus": {"cuda": "NVIDIA H200"}})
    'cuda (NVIDIA H200), float32'
    """
    labels: dict[str, list[str]] = {}
    gpus = manifest.get("gpus") or {}
    for model in [model for model in manifest.get("models", []) if "device" in model]:
        device = model.get("device") or ""
        name = f"{device} ({gpus[device]})" if device in gpus else device
        text = ", ".join(filter(None, [name, model.get("precision")]))
        labels.setdefault(text or "not known", []).append(str(model.get("label")))
    if len(labels) == 1:
        return next(iter(labels))
    return "; ".join(f"{text}: {', '.join(names)}" for text, names in labels.items())


def build_models_table(run: RunTables) -> Table:
    """Return one row per model with its settings."""
    return tabulate(
        "Models",
        run.manifest.get("models", []),
        {
            "model": lambda model: str(model.get("label")),
            "plug-in": lambda model: str(model.get("name")),
            "parameters": _describe_parameters,
        },
    )


def _describe_parameters(model: Mapping[str, Any]) -> str:
    parameters = format_setting(model.get("parameters") or {})
    tuned = format_setting([name.replace("_", " ") for name in model.get("searched") or []])
    return "; ".join(filter(None, [parameters, f"tuned: {tuned}" if tuned else ""]))
