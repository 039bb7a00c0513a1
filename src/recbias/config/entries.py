"""The entries of a spec: the plug-in that each names, its label, groups, search and re-rankers.

An entry is a name, or a mapping with ``name``, ``label`` and settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from recbias.config.labels import (
    create_label,
    distinguish_metrics,
    distinguish_plugins,
    shorten_name,
)
from recbias.config.settings import (
    Builder,
    Setting,
    as_plain,
    describe_value,
    list_members,
    read_settings,
    strip_annotations,
    suggest_default,
)
from recbias.config.specs import (
    DEFAULT_GAPS,
    SECTIONS,
    Choice,
    DatasetSpec,
    Dimension,
    Grouping,
    GroupingKeys,
    IntervalSpec,
    PluginSpec,
    Range,
    Reranked,
    Tune,
    TuneSpec,
)
from recbias.core import measures
from recbias.core.errors import (
    Contradiction,
    MissingExtra,
    MissingFile,
    OutOfRange,
    UnknownKey,
    UnknownName,
    UserError,
    WrongType,
)
from recbias.core.packages import describe_missing, list_libraries, list_missing
from recbias.core.plugins import RerankedModel, SelectedModel
from recbias.core.registry import Registry, digest_source, is_file
from recbias.core.text import find_nearest, suggest
from recbias.formats.yaml import Document, KeyPath, read_file

_GROUPING = tuple(field.name for field in fields(GroupingKeys))
"""The keys of an entry of a metric that group it."""

_Registries: TypeAlias = Mapping[str, Registry]
"""The plug-ins by kind."""


AUDITED = ".audited"
"""The end of the name of human labels, after that of the labels that they check."""

_ResolveMetric: TypeAlias = Callable[[str, Any, KeyPath], PluginSpec | None]
"""Resolves the entry of a plug-in: kind, entry and location."""


@dataclass(frozen=True)
class Resolver:
    """Resolves entries; faults are recorded in the document.

    Args:
        k: The cutoff of metrics without one.
        device: The device of models without one; None for the default of each model.
        audited: The names of the labels that people checked, whose metrics are corrected.
        swept: The settings that the labels of entries state, by the place of the entry.
    """

    document: Document
    registries: _Registries
    k: int
    device: str | None = None
    audited: frozenset[str] = frozenset()
    swept: Mapping[KeyPath, Mapping[str, Any]] = field(default_factory=dict)

    def resolve_datasets(self, entries: Sequence[tuple[Any, KeyPath]]) -> tuple[DatasetSpec, ...]:
        """Return the datasets that have no fault, with labels that tell them apart."""
        resolved = [self.resolve_dataset(*entry) for entry in entries]
        datasets = [dataset for dataset in resolved if dataset is not None]
        filtered = [
            {each.name: each.parameters for each in dataset.filters} for dataset in datasets
        ]
        sources = [
            replace(dataset.source, parameters=dataset.source.parameters | settings)
            for dataset, settings in zip(datasets, filtered, strict=True)
        ]
        return tuple(
            DatasetSpec(replace(dataset.source, label=spec.label), dataset.filters, spec.label)
            for dataset, spec in zip(datasets, self._distinguish(sources), strict=True)
        )

    def resolve_dataset(self, raw: Any, location: KeyPath) -> DatasetSpec | None:
        """Return a dataset with its filters, or None if the dataset has a fault."""
        filters: Any = []
        if isinstance(raw, dict) and "filters" in raw:
            raw = dict(raw)
            filters = raw.pop("filters") or []
        source = self.resolve("datasets", raw, location)
        filter_specs = self.resolve_list("filters", filters, (*location, "filters"))
        return DatasetSpec(source, filter_specs, source.label) if source else None

    def resolve_list(self, kind: str, raw: Any, location: KeyPath) -> tuple[PluginSpec, ...]:
        """Return the plug-ins of a list.

        A metric is there once for each way its groups are reported, and a model once by itself and
        once for each re-ranker.
        """
        if not isinstance(raw, (list, tuple)):
            message = f"must be a list, found {describe_value(raw)}"
            remedy = "write each entry after a dash"
            self.document.add_fault(location, message, remedy=remedy, kind=WrongType)
            return ()
        read = [self.resolve(kind, entry, (*location, at)) for at, entry in enumerate(raw)]
        specs = [spec for spec in read if spec is not None]
        if kind == "detectors":
            specs += [*self._resolve_audits(raw, read, location)]
        elif kind == "metrics":
            specs = [each for spec in specs for each in self._add_corrected(spec)]
        elif kind == "models":
            specs = self._distinguish(specs)
        elif kind == "tests":
            specs = distinguish_plugins(specs, omitted=("alpha", "correction", "family"))
        variants = [variant for spec in specs for variant in _expand(spec)]
        return tuple(distinguish_metrics(variants) if kind == "metrics" else variants)

    def _distinguish(self, specs: Sequence[PluginSpec]) -> list[PluginSpec]:
        """Return entries with labels that tell them apart, and state what a sweep varies."""
        return distinguish_plugins(specs, [self.swept.get(spec.where, {}) for spec in specs])

    def _resolve_audits(
        self, raw: Sequence[Any], specs: Sequence[PluginSpec | None], location: KeyPath
    ) -> Iterator[PluginSpec]:
        """Yield the human labels of the entries with ``audited``."""
        for at, (entry, spec) in enumerate(zip(raw, specs, strict=True)):
            if spec is None or not isinstance(entry, dict) or entry.get("audited") is None:
                continue
            audited = entry["audited"]
            settings = audited if isinstance(audited, dict) else {"path": audited}
            named = {"name": f"{spec.label}{AUDITED}", "detector": "human_labels"}
            labels = {"columns": list(spec.plugin.kinds), **settings, **named}
            if audit := self.resolve("detectors", labels, (*location, at, "audited")):
                yield audit

    def _add_corrected(self, spec: PluginSpec) -> Iterator[PluginSpec]:
        """Yield a metric, and if its label is audited also the one with corrected values."""
        column = str(spec.parameters.get("label", ""))
        name = column.rpartition(".")[0] or column
        if name not in self.audited or spec.parameters.get("corrected", True) is not None:
            yield spec
            return
        for corrected in (False, True):
            parameters = spec.parameters | {"corrected": corrected}
            label = f"{spec.label}(corrected=True)" if corrected else spec.label
            if not spec.is_labelled:
                shown = parameters if corrected else spec.parameters
                label = create_label("metrics", spec.plugin, spec.name, shown, spec.grouping)
            plugin = replace(spec.plugin, corrected=corrected)
            yield replace(spec, plugin=plugin, parameters=parameters, label=label)

    def resolve(
        self, kind: str, raw: Any, location: KeyPath, default_name: str = ""
    ) -> PluginSpec | None:
        """Return the plug-in of a name, or of a mapping with one, or None if it has a fault."""
        n_faults = len(self.document.faults)
        try:
            spec = self._read_entry(kind, raw, location, default_name)
        except UserError as error:
            where = (*location, error.where) if error.where else location
            self.document.add_error(where, error)
            return None
        return spec if len(self.document.faults) == n_faults else None

    def _read_entry(
        self, kind: str, raw: Any, location: KeyPath, default_name: str
    ) -> PluginSpec | None:
        name_key = "detector" if kind == "detectors" else "name"
        entry = {name_key: raw} if isinstance(raw, str) else raw
        if not isinstance(entry, dict):
            message = f"must be a name or a mapping, found {describe_value(raw)}"
            raise WrongType(message, remedy="write - Name, or - {name: Name, setting: value}")
        entry = dict(entry)
        if not default_name:
            self._refuse_misspelt_name(kind, name_key, entry, location)
        label = entry.pop("name", None) if kind == "detectors" else None
        if kind == "detectors":
            entry.pop("audited", None)
        name = entry.pop(name_key, default_name or label)
        if not isinstance(name, str) or not name:
            message = "has no name" if name is None else f"{describe_value(name)} is not a name"
            example = next(iter(self.registries[kind].table), "package/Name")
            raise WrongType(message, remedy=f"write {name_key}: {example}")
        name_location = location if isinstance(raw, str) else (*location, name_key)
        return _EntryReader(self, kind, location, name_location).read(name, entry, label)

    def _refuse_misspelt_name(
        self, kind: str, name_key: str, entry: dict[str, Any], location: KeyPath
    ) -> None:
        """Raise if a key was meant to name the plug-in; a detector's label may be its name."""
        if name_key in entry:
            return
        with suppress(UnknownName):
            if isinstance(label := entry.get("name"), str):
                self.registries[kind].resolve_name(label)
                return
        for key in find_nearest(name_key, map(str, entry), limit=1):
            message, remedy = f"not a key of {location[0]}", f"did you mean {name_key}?"
            raise UnknownKey(message, where=key, remedy=remedy)


def _expand(spec: PluginSpec) -> Iterator[PluginSpec]:
    """Yield a plug-in; a metric by group without ``gap`` is yielded once for each default."""
    grouping = spec.grouping
    if grouping is None or grouping.gap:
        yield spec
        yield from (_make_reranked(spec, reranker) for reranker in spec.rerankers)
        return
    for gap in DEFAULT_GAPS:
        least = f", min_group={grouping.min_group}" if grouping.min_group else ""
        suffix = "" if gap == "groups" else f", gap={gap}{least}"
        name, closing = (spec.label[:-1], ")") if spec.label.endswith(")") else (spec.label, "")
        label = f"{name}{suffix}{closing}"
        yield replace(spec, grouping=replace(grouping, gap=gap), label=label)


# ---- one entry ----


@dataclass(frozen=True)
class _EntryReader:
    """Reads one entry; faults are recorded in the document."""

    resolver: Resolver
    kind: str
    location: KeyPath
    name_location: KeyPath

    @property
    def document(self) -> Document:
        """The document of the entry."""
        return self.resolver.document

    def read(self, written_name: str, entry: dict[str, Any], label: Any) -> PluginSpec | None:
        """Return the plug-in of an entry, or None if it has a fault.

        Keys that are not settings are removed; ``label`` is that of a detector, else None.
        """
        loaded = self._load(written_name)
        if loaded is None:
            return None
        name, cls, name_settings = loaded
        n_faults = len(self.document.faults)
        self._move_grouping(cls, entry, name_settings)
        label = self._read_label(cls, entry, label)
        tune = self._pop_key(cls, entry, "tune") if self.kind in {"models", "rerankers"} else None
        rerank = self._pop_key(cls, entry, "rerank") if self.kind == "models" else None
        baseline = self._read_baseline(cls, entry) if self.kind == "models" else None
        grouping = self._read_grouping(cls, entry) if self.kind == "metrics" else None
        raw = self._merge_settings(cls, entry, name_settings)
        entry_keys = _list_entry_keys(self.kind, is_grouped=grouping is not None)
        builder = Builder(
            self.document,
            shorten_name(name),
            resolve_entry=self.resolver.resolve,
            entry_keys=entry_keys,
        )
        plugin, search = _read_searched(
            builder, cls, raw, tune, self.location, self.resolver.resolve
        )
        if len(self.document.faults) > n_faults:  # else they are checked with those of the others
            self._report_missing_packages(shorten_name(name), cls)
        if plugin is None:
            return None
        parameters = as_plain(plugin, builder.path_texts)
        return PluginSpec(
            self.kind,
            name,
            label or create_label(self.kind, plugin, name, parameters, grouping),
            plugin,
            parameters,
            self.location,
            digest_source(name, base=self._folder),
            search,
            grouping,
            () if rerank is None else self._read_rerankers(plugin, rerank),
            is_labelled=bool(label),
            baseline=baseline,
        )

    def _report_missing_packages(self, name: str, cls: type) -> None:
        if missing := list_missing(list_libraries(cls)):
            message, remedy = describe_missing([name], missing)
            self.document.add_fault(self.location, message, remedy=remedy, kind=MissingExtra)

    @property
    def _folder(self) -> Path:
        return self.document.mark(self.name_location).folder

    def _load(self, name: str) -> tuple[str, type, dict[str, Any]] | None:
        """Return the name, the class, and the settings in the name: ``k`` of ``nDCG@10``."""
        registry, settings = self.resolver.registries[self.kind], dict[str, Any]()
        try:
            if self.kind == "metrics" and not is_file(name):
                name, settings = measures.parse_metric(name)
            return registry.resolve_name(name), registry.load(name, base=self._folder), settings
        except UnknownName as error:
            error.remedy = (
                _find_other_kind(name, self.kind, self.resolver.registries) or error.remedy
            )
            self.document.add_error(self.name_location, error)
        except MissingFile as error:
            self.document.add_error(
                self.name_location, MissingFile(str(error), remedy=error.remedy)
            )
        except UserError as error:
            self.document.add_error(self.name_location, error)
        return None

    def _read_baseline(self, cls: type, entry: dict[str, Any]) -> bool | None:
        value = self._pop_key(cls, entry, "baseline")
        if value is None or isinstance(value, bool):
            return value
        remedy = "write baseline: true for a model that others are compared with"
        self._blame("baseline", f"must be true or false, found {describe_value(value)}", remedy)
        return None

    def _read_rerankers(self, model: Any, raw: Any) -> tuple[PluginSpec, ...]:
        if "lists" not in getattr(model, "provides", {"lists"}):
            remedy = "remove rerank, or choose a model that recommends lists, such as EASE"
            self._blame("rerank", "the model recommends no lists", remedy, Contradiction)
            return ()
        return _read_rerankers(self.resolver, raw, (*self.location, "rerank"))

    def _move_grouping(
        self, cls: type, entry: dict[str, Any], name_settings: dict[str, Any]
    ) -> None:
        """Move the keys that group a metric from its name to its entry: ``nDCG(by=gender)``."""
        keys = {*_GROUPING} - read_settings(cls).keys()
        for key in sorted(keys & name_settings.keys()):
            value = name_settings.pop(key)
            if entry.setdefault(key, value) is not value:
                self._blame_repetition(key)

    def _pop_key(self, cls: type, entry: dict[str, Any], key: str) -> Any:
        return None if key in read_settings(cls) else entry.pop(key, None)

    def _read_grouping(self, cls: type, entry: dict[str, Any]) -> Grouping | None:
        given = {key: self._pop_key(cls, entry, key) for key in _GROUPING}
        given = {key: value for key, value in given.items() if value is not None}
        if given and "by" not in given:
            for key in given:
                self._blame(key, f"{key} needs by", "add by: gender", Contradiction)
            return None
        keys = given and Builder(self.document, "by").build(GroupingKeys, given, self.location)
        return keys.grouping if keys else None

    def _read_label(self, cls: type, entry: dict[str, Any], label: Any) -> str:
        label = label if label is not None else self._pop_key(cls, entry, "label")
        if label is None or (isinstance(label, str) and label and label.isprintable()):
            return label or ""
        key = "name" if self.kind == "detectors" else "label"
        self._blame(
            key, f"must be text on one line, found {describe_value(label)}", "put it in quotes"
        )
        return ""

    def _merge_settings(
        self, cls: type, entry: dict[str, Any], name_settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the settings of the entry, those in its name, the default cutoff and device."""
        for key in name_settings.keys() & entry.keys():
            self._blame_repetition(key)
        raw = entry | dict(name_settings)
        if self.resolver.device is not None and "device" in read_settings(cls):
            raw.setdefault("device", self.resolver.device)
        cutoff = read_settings(cls).get("k")
        has_open_cutoff = cutoff is not None and not cutoff.needed and cutoff.default is None
        if self.kind == "metrics" and has_open_cutoff and raw.get("k") is None:
            raw["k"] = self.resolver.k
        return raw

    def _blame_repetition(self, key: str) -> None:
        message = f"{key} is given both in the name and as a setting"
        self._blame(key, message, "give it once", Contradiction)

    def _blame(
        self, key: str, message: str, remedy: str, kind: type[UserError] = WrongType
    ) -> None:
        self.document.add_fault((*self.location, key), message, remedy=remedy, kind=kind)


def _find_other_kind(name: str, kind: str, registries: _Registries) -> str:
    """Return the help line for a name that is a plug-in of another kind, else blank."""
    for other_kind, registry in registries.items():
        if other_kind != kind and (spelling := registry.find_spelling(name)):
            section = ".".join(SECTIONS[other_kind])
            return f"{spelling} is a {registry.kind}: move it to {section}"
    return ""


def _list_entry_keys(kind: str, *, is_grouped: bool) -> tuple[str, ...]:
    """Return the keys of an entry that are not settings of its plug-in."""
    own_keys = {
        "models": ("tune", "rerank", "baseline"),
        "rerankers": ("tune",),
        "metrics": _GROUPING if is_grouped else ("by",),
        "detectors": ("detector", "audited"),
    }
    return ("name" if kind == "detectors" else "label", *own_keys.get(kind, ()))


# ---- re-rankers of a model ----


def _read_rerankers(resolver: Resolver, raw: Any, location: KeyPath) -> tuple[PluginSpec, ...]:
    """Return the re-rankers of an entry, or of a list; one for each value of its dial."""
    entries: list[tuple[Any, KeyPath]] = [(raw, location)]
    if isinstance(raw, list):
        entries = [(entry, (*location, at)) for at, entry in enumerate(raw)]
    if not entries:
        remedy = "name a re-ranker, or remove the key"
        resolver.document.add_fault(location, "is an empty list", remedy=remedy, kind=WrongType)
    read = [item for entry in entries for item in _read_versions(resolver, *entry)]
    return tuple(distinguish_plugins([spec for spec, _ in read], [value for _, value in read]))


def _read_versions(
    resolver: Resolver, entry: Any, location: KeyPath
) -> Iterator[tuple[PluginSpec, dict[str, Any]]]:
    """Yield the re-rankers of an entry, each with the value of its dial in a list of them."""
    dial, document = _find_dial(resolver, entry, location), resolver.document
    values = entry.get(dial) if dial else None
    if not isinstance(values, list):
        if (spec := _read_reranker(resolver, entry, location)) is not None:
            yield spec, {}
        return
    if not values:
        where, remedy = (*location, dial), f"give values, or leave {dial} out"
        document.add_fault(where, "is an empty list", remedy=remedy, kind=WrongType)
    if "tune" in entry:
        message, remedy = f"has values of {dial} and a search", f"remove tune, or values of {dial}"
        document.add_fault(location, message, remedy=remedy, kind=Contradiction)
        return
    if any(value in values[:at] for at, value in enumerate(values)):
        where, remedy = (*location, dial), "give each value once"
        document.add_fault(where, "has a value twice", remedy=remedy, kind=Contradiction)
    for value in values:
        spec = _read_reranker(resolver, entry | {dial: value}, location)
        if spec is None:
            return
        yield spec, {dial: value}


def _find_dial(resolver: Resolver, entry: Any, location: KeyPath) -> str:
    """Return the setting of which there may be several values, blank for a faulty entry."""
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str):
        return ""
    folder = resolver.document.mark(location).folder
    try:
        cls: Any = resolver.registries["rerankers"].load(name, base=folder)
    except UserError:  # reported where the entry is resolved
        return ""
    dial = getattr(cls, "dial", "")
    return dial if isinstance(dial, str) else ""


def _read_reranker(resolver: Resolver, entry: Any, location: KeyPath) -> PluginSpec | None:
    spec, k = resolver.resolve("rerankers", entry, location), resolver.k
    n = None if spec is None else spec.parameters.get("candidates")
    if isinstance(n, int) and n < k:
        message, remedy = f"{n} candidates are fewer than k, which is {k}", max(100, 10 * k)
        where = (*location, "candidates") if "candidates" in entry else location
        resolver.document.add_fault(
            where, message, remedy=f"set candidates: {remedy}", kind=OutOfRange
        )
    return spec


def _make_reranked(base: PluginSpec, reranker: PluginSpec) -> PluginSpec:
    """Return the entry of a model whose lists are re-ranked: ``EASE + calibration``."""
    settings: Mapping[str, Any] = {"name": reranker.name, **reranker.parameters}
    return replace(
        base,
        label=f"{base.label} + {reranker.label}",
        plugin=RerankedModel(SelectedModel(base.name, base.plugin), reranker.plugin),
        parameters=base.parameters | {"rerank": settings},
        where=reranker.where,
        tune=reranker.tune,
        rerankers=(),
        reranked=Reranked(replace(base, rerankers=()), reranker),
    )


# ---- searches ----


@cache
def load_packaged_spaces() -> Mapping[str, Mapping[str, Any]]:
    """Return the search spaces that come with the package: by collection, then by model."""
    return read_file(Path(__file__).with_name("spaces.yaml")).data


def get_packaged_space(name: str, model: str) -> dict[str, Any]:
    """Return the search space of a model in a packaged collection (``thesis``), as in a spec.

    Raises:
        UnknownName: There is no such collection, or it has no space for the model.
    """
    collections = load_packaged_spaces()
    if name not in collections:
        message = f"no search space is called {name!r}"
        raise UnknownName(message, remedy=suggest(name, collections))
    if model not in collections[name]:
        models = ", ".join(collections[name])
        remedy = (
            f"it covers {models}; for {model} write the space: {{setting: {{log: [0.001, 1]}}}}"
        )
        raise UnknownName(f"the search space {name!r} does not cover {model}", remedy=remedy)
    return dict(collections[name][model])


def _read_searched(
    builder: Builder,
    cls: type,
    raw: Mapping[str, Any],
    tune: Any,
    location: KeyPath,
    resolve: _ResolveMetric,
) -> tuple[Any, Tune | None]:
    """Return the plug-in of ``raw``, None if it has a fault, and the search in ``tune``."""
    if tune is None:
        return builder.build(cls, raw, location), None
    space = tune.get("space") if isinstance(tune, dict) else None
    builder.searched = frozenset(space if isinstance(space, dict) else ())
    n_faults = len(builder.document.faults)
    search = _read_tune(builder, cls, raw, tune, location, resolve)
    if len(builder.document.faults) > n_faults:
        builder.read_fields(cls, raw, location)
        return None, search
    builder.searched = frozenset(each.parameter for each in (search.space if search else ()))
    return build_base(builder, cls, raw, location, search), search


def _read_tune(
    builder: Builder,
    cls: type,
    raw: Mapping[str, Any],
    tune: Any,
    location: KeyPath,
    resolve: _ResolveMetric,
) -> Tune | None:
    """Return the search in the value ``tune`` of a model's entry."""
    document, tune_location = builder.document, (*location, "tune")
    if not isinstance(tune, dict):
        return Builder(document, "tune").validate(TuneSpec, tune, tune_location)  # type: ignore[no-any-return]  # a fault
    if isinstance(tune.get("space"), str):
        try:
            packaged_space = get_packaged_space(tune["space"], builder.owner)
        except UserError as error:
            document.add_error((*tune_location, "space"), error)
            return None
        free = {name: value for name, value in packaged_space.items() if name not in raw}
        tune = tune | {"space": free}
    values = Builder(document, "tune").validate_fields(TuneSpec, tune, tune_location)
    intervals = values.get("space", {})
    space = read_space(builder, cls, intervals, (*tune_location, "space")) if intervals else ()
    for name in [name for name in intervals if name in raw]:
        message = f"is searched and also set, at {document.format_path((*location, name))}"
        where, remedy = (*tune_location, "space", name), "remove one of the two"
        document.add_fault(where, message, remedy=remedy, kind=Contradiction, key=True)
    if "metric" not in values:
        return None
    metric = resolve("metrics", values["metric"], (*tune_location, "metric"))
    if metric is None or "space" not in values:
        return None
    spec = TuneSpec(**values)
    others = (spec.objective, spec.max_perplexity_increase)
    return Tune(metric, spec.trials, space, as_plain(spec), spec.pruning, spec.parallel, *others)


def build_base(
    builder: Builder, cls: type, raw: Mapping[str, Any], location: KeyPath, tune: Tune | None
) -> Any:
    """Build the plug-in whose settings ``raw`` a search leaves; return None if there is a fault.

    What is searched has its default, and where these fit no plug-in, the first value of its
    interval or choices. Each trial replaces it.
    """
    faults = builder.document.faults
    n_faults, plugin = len(faults), builder.build(cls, raw, location)
    if plugin is not None or tune is None or not tune.space:
        return plugin
    del faults[n_faults:]
    firsts = {
        each.parameter: each.values[0] if isinstance(each, Choice) else each.low
        for each in tune.space
    }
    return builder.build(cls, {**firsts, **raw}, location)


def read_space(
    builder: Builder, cls: type, raw: Mapping[str, Any], location: KeyPath
) -> tuple[Dimension, ...]:
    """Return the dimensions of the search space ``raw``, by setting of ``cls``.

    Faults are recorded in the document of ``builder``, which validates the values.
    """
    settings = read_settings(cls)
    builder.refuse_unknown_keys(settings, raw, location)
    dimensions = [
        _read_dimension(builder, settings[name], interval, (*location, name))
        for name, interval in raw.items()
        if name in settings
    ]
    return tuple(dimension for dimension in dimensions if dimension is not None)


def _read_dimension(
    builder: Builder, setting: Setting, raw: Any, location: KeyPath
) -> Dimension | None:
    """Return the interval or the choices of one setting, whose values its type accepts."""
    types = {strip_annotations(member) for member in list_members(setting.hint)}
    is_of_integers = int in types and float not in types
    reader = Builder(builder.document, f"the interval of {setting.name}")
    interval = reader.validate(IntervalSpec, raw, location)
    if interval is None:
        return None
    ((kind, values),) = raw.items()
    is_integer = kind != "choice" and (kind == "int" or is_of_integers)
    n_faults, parsed = len(builder.document.faults), []
    for at, value in enumerate(values):
        place = (*location, kind, at)
        if is_integer and not isinstance(value, int):
            message = f"must be a whole number, found {value}"
            builder.document.add_fault(place, message, kind=WrongType)
        else:
            default = suggest_default(setting)
            parsed.append(builder.validate(setting.hint, value, place, default))
    if len(builder.document.faults) > n_faults:
        return None
    if kind == "choice":
        return Choice(setting.name, tuple(values), tuple(parsed))
    low, high = values
    return Range(setting.name, low, high, kind == "log", is_integer)
