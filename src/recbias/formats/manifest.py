"""``manifest.json`` of a run folder: the one declaration by which it is written and read."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

_MOST = 10**15

_Count: TypeAlias = Annotated[int, Field(ge=0, le=_MOST)]
_Amount: TypeAlias = Annotated[int | float, Field(ge=0, le=_MOST)]
_Number: TypeAlias = int | float | None
_Settings: TypeAlias = dict[str, Any]


def _require_time(text: str) -> str:
    datetime.fromisoformat(text)
    return text


class _Part(BaseModel):
    """A part of a manifest: no conversion of types; keys of other versions are kept."""

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)


class Plugin(_Part):
    """A dataset, filter, split, model or test with its settings."""

    label: str
    name: str | None = None
    parameters: _Settings | None = None


class Dataset(Plugin):
    """A dataset; ``files`` are the SHA-256 digests of its files.

    ``value_labels`` are the names of coded values by column and value, for reports.
    """

    filters: list[Plugin] = []
    files: dict[str, str] = {}
    counts: dict[str, _Count] = {}
    value_labels: dict[str, dict[str, str]] = {}


class Model(Plugin):
    """A model; ``searched`` are the settings that a search chose.

    ``baseline`` is the model whose lists a re-ranked one reorders, ``is_baseline`` whether others
    are compared with it.
    """

    device: str | None = None
    precision: str | None = None
    baseline: str | None = None
    is_baseline: bool | None = None
    searched: list[str] = []


class Asked(_Part):
    """The queries of a dataset; ``labels`` are those that occur with each label."""

    dataset: str
    asked: _Count = 0
    unit: str = "query"
    labels: dict[str, list[str]] | None = None
    parameters: _Settings | None = None


class Evaluated(_Part):
    """The digests of the queries, and of the test items of all users; blank without any."""

    dataset: str
    seed: int | str | None = None
    fold: int | str | None = None
    queries: str
    test: str = ""


class Metric(_Part):
    """The definition of a metric; ``needs`` is what it is computed from."""

    metric: str
    k: _Count | None = None
    name: str | None = None
    parameters: _Settings | None = None
    summary: str | None = None
    formula: str | None = None
    direction: str = "none"
    needs: list[str] = []
    values: str | None = None
    unit: str | None = None
    source: str | None = None
    family: str = ""
    group_direction: str = "none"


class Undefined(_Part):
    """A metric that has no values for a model, which lacks an output."""

    metric: str
    k: int | None = None
    model: str
    missing: Any = None


class _Fit(_Part):
    """What an entry is about; ``seed`` and ``fold`` may be text, such as ``all``."""

    dataset: str = ""
    model: str = ""
    seed: int | str | None = None
    fold: int | str | None = None


class Address(_Fit):
    """The address of the values of a metric, to find what two runs share."""

    metric: str
    k: int | None
    address: str


class Search(_Fit):
    """The outcome of a search of settings."""

    tune: Any = None
    metric: str | None = None
    k: int | None = None
    direction: str | None = None
    settings: _Settings | None = None
    value: _Number = None
    trial: _Count
    failed: _Count = 0
    pruned: _Count = 0
    excluded: _Count = 0
    seconds: _Amount | None = None
    trials: list[dict[str, Any]] = []


class Claim(_Part):
    """The claim of the spec in words, its estimate, and the verdict on it."""

    claim: str
    alpha: float
    verdict: str
    problem: str = ""
    estimate: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    p: float | None = None
    n: int | None = None


class Manifest(_Part):
    """The content of ``manifest.json``.

    Args:
        stages: The records of the stages, as in ``core.context.StageRecord``.
        failures: Failed stages, or steps after the stages: the columns ``core.measures.FAILURES``.
        checks: Verdicts of checks: the columns ``core.measures.CHECKS``.
        files: The size in bytes of each table.
        digests: The SHA-256 digest of each table.
        reports: The SHA-256 digest of each report when it was last written.
        address: The digest of what the files of the run depend on; absent after `recbias report`.
    """

    schema_version: int = 1
    name: str = ""
    spec_digest: str | None = None
    recbias: str | None = None
    commit: str | None = None
    python: str | None = None
    platform: str | None = None
    libraries: dict[str, str | None] | None = None
    started: Annotated[str, AfterValidator(_require_time)] | None = None
    seconds: _Amount | None = None
    peak_memory_mb: _Amount | None = None
    seeds: list[int] | None = None
    limit: _Count | None = None
    datasets: list[Dataset] = []
    queries: list[Asked] = []
    evaluated: list[Evaluated] = []
    split: Plugin | None = None
    models: list[Model] = []
    gpus: dict[str, str] | None = None
    searches: list[Search] = []
    metrics: list[Metric] = []
    undefined: list[Undefined] = []
    tests: list[Plugin] = []
    addresses: list[Address] = []
    stages: list[_Settings] = []
    failures: list[_Settings] = []
    warnings: list[str] = []
    offline: bool | None = None
    checks: list[_Settings] = []
    claim: Claim | None = None
    files: dict[str, _Count] = {}
    digests: dict[str, str] = {}
    reports: dict[str, str] = {}
    address: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the content of the file; a field that was not given is not in it."""
        return self.model_dump(exclude_unset=True)

    def render(self) -> str:
        """Return the text of the file."""
        return json.dumps(self.as_json(), indent=1, ensure_ascii=False, default=str) + "\n"


def parse_manifest(text: str | bytes) -> Manifest:
    """Return the manifest in a text.

    Raises:
        ValueError: It is none; the message has the place of the first fault.

    >>> parse_manifest('{"name": "a", "models": [{"label": "EASE"}]}').models[0].label
    'EASE'
    >>> parse_manifest('{"models": [{"label": 7}]}')
    Traceback (most recent call last):
    ...
    ValueError: it is not the manifest of a run: models.0.label: Input should be a valid string
    """
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = "".join(f"{step}." for step in fault["loc"]).removesuffix(".")
        found = ": ".join(filter(None, [place, fault["msg"]]))
        message = f"it is not the manifest of a run: {found}"
        raise ValueError(message) from error
