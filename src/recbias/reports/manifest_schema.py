"""The schema of ``manifest.json``: the types of what reports, comparisons and cards read of it.

Keys may be absent, and others may be there.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

MAX_COUNT = 10**15

Count: TypeAlias = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Amount: TypeAlias = Annotated[float, Field(ge=0, le=MAX_COUNT)]
Number: TypeAlias = float | None
Settings: TypeAlias = dict[str, Any] | None


def _require_time(text: str) -> str:
    datetime.fromisoformat(text)
    return text


class Part(BaseModel):
    """A part of a manifest: no conversion of types, other keys are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, defer_build=True)


class Plugin(Part):
    """A dataset, filter, split, model or test with its settings."""

    label: str
    name: str | None = None
    parameters: Settings = None


class Dataset(Plugin):
    """A dataset with the digests of its files."""

    filters: list[Plugin] | None = None
    files: dict[str, str] | None = None
    counts: dict[str, Count] | None = None


class Model(Plugin):
    """A model; ``searched`` are the settings that a search chose."""

    searched: list[str] | None = None
    device: str | None = None
    devices: int | None = None
    precision: str | None = None
    baseline: str | None = None


class Asked(Part):
    """The queries of a dataset."""

    dataset: str
    asked: Count = 0
    unit: str = "query"
    labels: dict[str, list[str]] | None = None
    parameters: Settings = None


class Metric(Part):
    """The definition of a metric."""

    metric: str
    k: Annotated[int, Field(ge=0, le=MAX_COUNT)] | None = None
    name: str | None = None
    parameters: Settings = None
    summary: str | None = None
    formula: str | None = None
    direction: str = "none"
    group_direction: str = "none"
    values: str | None = None
    unit: str | None = None
    source: str | None = None


class Derivation(Part):
    """What of the values of a metric follows from the other files; no target for all of them."""

    metric: str
    target: str | None = None
    value: bool
    interval: Literal["t", "wilson", "samples", "own"]
    averaged: bool


class Fit(Part):
    """What a row is about; ``seed`` and ``fold`` may be text, such as ``all``."""

    dataset: str = ""
    model: str = ""
    seed: int | str | None = None
    fold: int | str | None = None


class Address(Fit):
    """The address of the values of a metric."""

    metric: str
    k: int | None
    address: str


class Undefined(Part):
    """A metric that has no values for a model."""

    metric: str
    model: str
    k: int | None = None
    missing: Any = None


class Failure(Fit):
    """A failed stage."""

    stage: str = "a stage"
    message: str = ""
    help: str | None = ""
    user: bool = False
    traceback: str | None = ""
    because: str | None = ""


class Stage(Fit):
    """The record of a stage."""

    stage: str = ""
    kind: str = ""
    digest: str = ""
    seconds: Amount | None = None
    peak_memory_mb: Amount | None = None
    cost: dict[str, Amount | None] | None = None
    sizes: dict[str, Count] | None = None
    reused: bool = False
    warnings: list[str] = []
    facts: dict[str, Any] | None = None


class Search(Fit):
    """The outcome of a search of settings."""

    metric: str | None = None
    k: int | None = None
    direction: str | None = None
    settings: Settings = None
    value: Number = None
    trial: Count


class Check(Fit):
    """The verdict of a check."""

    dataset: str
    model: str
    metric: str
    group: str
    target: str
    k: int | None
    baseline: str
    value: Number
    ci_low: Number
    ci_high: Number
    line: str
    verdict: str
    basis: str
    strict: bool
    failed: bool


class Manifest(Part):
    """The content of ``manifest.json``."""

    name: str = ""
    recbias: str | None = None
    spec_digest: str | None = None
    started: Annotated[str, AfterValidator(_require_time)] | None = None
    seconds: Amount | None = None
    peak_memory_mb: Amount | None = None
    commit: str | None = None
    python: str | None = None
    platform: str | None = None
    libraries: dict[str, str | None] | None = None
    gpus: dict[str, str] | None = None
    seeds: list[int] | None = None
    limit: Count | None = None
    offline: bool | None = None
    datasets: list[Dataset] = []
    queries: list[Asked] = []
    split: Plugin | None = None
    models: list[Model] = []
    metrics: list[Metric] = []
    derivations: list[Derivation] | None = None
    tests: list[Plugin] = []
    undefined: list[Undefined] = []
    addresses: list[Address] = []
    stages: list[Stage] = []
    searches: list[Search] = []
    checks: list[Check] = []
    failures: list[Failure] = []
    warnings: list[str] = []
    files: dict[str, Count] | None = None
    digests: dict[str, str] | None = None
    reports: dict[str, str] | None = None


def find_fault(manifest: Mapping[str, Any]) -> str:
    """Return the place and the reason of the first value of another type; blank without one.

    >>> find_fault({"name": "a", "models": [{"label": "EASE"}]})
    ''
    >>> find_fault({"models": [{"label": 7}]})
    'models.0.label: Input should be a valid string'
    """
    try:
        Manifest.model_validate(manifest)
    except ValidationError as error:
        return locate_fault(error)
    return ""


def locate_fault(error: ValidationError) -> str:
    """Return the place and the reason of the first fault that pydantic found."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
