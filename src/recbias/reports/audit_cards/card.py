"""An audit card: what was audited, on whom, by which definitions, and what was found.

The classes are the schema of ``card.json``; a file that has other keys or types is refused.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, StringConstraints

from recbias.core.measurements.scores import Direction

SCHEMA_VERSION = 1
"""Incremented when a field is removed or changes its meaning."""

KIND: Literal["recbias audit card"] = "recbias audit card"

POWER = 0.8
"""The power of the smallest detectable differences of a card."""

Text: TypeAlias = Annotated[str, StringConstraints(max_length=100_000)]
Number: TypeAlias = FiniteFloat | None
"""A number; None if it is undefined."""

Digest: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256 digest or code in hex."""

Settings: TypeAlias = dict[str, Any]


class Part(BaseModel):
    """A part of a card: no other keys, no conversion of types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PluginPart(Part):
    """A dataset, filter, split, model or test with its settings."""

    label: Text
    name: Text
    parameters: Settings = {}


class ModelPart(PluginPart):
    """A model; ``searched`` are the settings that a search chose."""

    searched: list[Text] = []
    device: Text | None = None
    precision: Text | None = None


class DatasetPart(PluginPart):
    """A dataset; ``files`` are the SHA-256 digests of its files."""

    filters: list[PluginPart] = []
    files: dict[str, Text]
    counts: dict[str, int]


class Subject(Part):
    """What was audited."""

    name: Text
    spec_digest: Text
    recbias: Text
    commit: Text | None
    python: Text
    libraries: dict[str, Text | None]
    seeds: list[int]
    limit: int | None
    datasets: list[DatasetPart]
    split: PluginPart | None
    models: list[ModelPart]
    tests: list[PluginPart]


class QueriesPart(Part):
    """The queries of a dataset."""

    dataset: Text
    asked: int
    unit: Text
    parameters: Settings = {}


class GroupPart(Part):
    """A group of queries with the largest number of its units in a metric."""

    dataset: Text
    group: Text
    n: int


class MetricPart(Part):
    """The definition of a metric."""

    metric: Text
    name: Text
    direction: Direction
    summary: Text
    formula: Text
    range: Text
    unit: Text
    source: Text
    parameters: Settings


class Estimate(Part):
    """A value with its 95% interval, as in ``metrics.csv``."""

    dataset: Text
    model: Text
    seed: Text
    fold: Text
    metric: Text
    group: Text
    target: Text
    value: Number
    std: Number
    n: Number
    undefined: Number
    ci_low: Number
    ci_high: Number


class Comparison(Part):
    """A test, as in ``significance.csv``.

    ``detectable`` is the smallest difference that it would find with a power of ``POWER``.
    """

    dataset: Text
    model: Text
    seed: Text
    fold: Text
    metric: Text
    group: Text
    target: Text
    test: Text
    between: Text
    a: Text
    b: Text
    n: Number
    difference: Number
    ci_low: Number
    ci_high: Number
    p: Number
    p_adjusted: Number
    correction: Text
    family: Text
    family_size: Number
    alpha: Number
    significant: bool
    effect_size: Number
    detectable: Number


class CheckPart(Part):
    """A check of the spec with its verdict."""

    dataset: Text
    model: Text
    metric: Text
    group: Text
    target: Text
    baseline: Text
    value: Number
    ci_low: Number
    ci_high: Number
    line: Text
    verdict: Literal["pass", "fail", "undecided"]
    failed: bool


class Limits(Part):
    """What restricts the conclusions.

    Args:
        undefined: The number of undefined values of units in the estimates of each metric.
        missing_outputs: The metrics that are undefined for a model, which lacks an output.
        omitted_estimates: The number of estimates of targets that are in ``metrics.csv`` only.
        omitted_comparisons: The number of comparisons that are in ``significance.csv`` only.
    """

    undefined: dict[str, Number]
    missing_outputs: list[Text]
    warnings: list[Text]
    failures: list[Text]
    omitted_estimates: int
    omitted_comparisons: int


class Signature(Part):
    """The HMAC-SHA256 of the digest with a key that only its holders know."""

    algorithm: Literal["HMAC-SHA256"]
    value: Digest


class Card(Part):
    """An audit card.

    Args:
        files: The SHA-256 digests of the files of the run.
        digest: The SHA-256 digest of the canonical JSON of all other fields but ``signature``.
        signature: None if the card was written without a key.
    """

    kind: Literal["recbias audit card"]
    schema_version: Annotated[int, Field(ge=SCHEMA_VERSION, le=SCHEMA_VERSION)]
    audited: Subject
    queries: list[QueriesPart]
    groups: list[GroupPart]
    definitions: list[MetricPart]
    estimates: list[Estimate]
    comparisons: list[Comparison]
    checks: list[CheckPart]
    limits: Limits
    files: dict[str, Digest]
    digest: Text = ""
    signature: Signature | None = None
