"""The entries of a spec: the plug-in that each names, its label, groups, search and re-rankers.

An entry is a name, or a mapping with ``name``, ``label`` and settings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import (
    Collection,
    Hashable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, get_args

from recbias.config.settings import (
    Builder,
    Hint,
    Setting,
    as_plain,
    describe_value,
    list_members,
    read_settings,
    render_yaml,
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
    OutOfRange,
    UnknownKey,
    UnknownName,
    UserError,
    WrongType,
)
from recbias.core.packages import describe_missing, list_libraries, list_missing
from recbias.core.plugins import RerankedModel, SelectedModel
from recbias.core.registry import Registry, digest_source, is_file
from recbias.core.text import find_nearest, flatten_settings, make_printable, suggest
from recbias.formats.yaml import Document, KeyPath, read_file

_GROUPING = tuple(field.name for field in fields(Grouping))
_ENTRY_KEYS: Mapping[str, tuple[str, ...]] = {
    "models": ("label", "tune", "rerank", "baseline"),
    "rerankers": ("label", "tune"),
    "metrics": ("label", *_GROUPING),
    "detectors": ("name", "detector", "audited"),
}
"""The keys of an entry that are not settings of its plug-in; of other kinds only the label."""

AUDITED = ".audited"
"""The end of the name of human labels, after that of the labels that they check."""


@dataclass(frozen=True)
class Resolver:
    """Resolves entries; faults are recorded in the document.

    Args:
        registries: The plug-ins by kind.
        k: The cutoff of metrics without one.
        device: The device of models without one; None for the default of each model.
        audited: The names of the labels that people checked, whose metrics are corrected.
        swept: The settings that the labels of entries state, by the place of the entry.
    """

    document: Document
    registries: Mapping[str, Registry]
    k: int
    device: str | None = None
    audited: frozenset[str] = frozenset()
    swept: Mapping[KeyPath, Mapping[str, Any]] = field(default_factory=dict)

    def resolve_datasets(self, entries: Sequence[tuple[Any, KeyPath]]) -> tuple[DatasetSpec, ...]:
        """Return the datasets that have no fault, with labels that tell them apart."""
        resolved = [self.resolve_dataset(*entry) for entry in entries]
        datasets = [*filter(None, resolved)]
        sources = []
        for dataset in datasets:  # filters tell them apart as settings do
            filtered = {each.name: each.parameters for each in dataset.filters}
            parameters = dataset.source.parameters | filtered
            sources.append(replace(dataset.source, parameters=parameters))
        named = zip(datasets, self._distinguish(sources), strict=True)
        return tuple(
            DatasetSpec(replace(dataset.source, label=spec.label), dataset.filters)
            for dataset, spec in named
        )

    def resolve_dataset(self, raw: Any, location: KeyPath) -> DatasetSpec | None:
        """Return a dataset with its filters, or None if the dataset has a fault."""
        filters: Any = []
        if isinstance(raw, dict) and "filters" in raw:
            raw = dict(raw)
            filters = raw.pop("filters") or []
        source = self.resolve("datasets", raw, location)
        filter_specs = self.resolve_list("filters", filters, (*location, "filters"))
        return DatasetSpec(source, filter_specs) if source else None

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
        specs = [*filter(None, read)]
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
            audited = entry.get("audited") if isinstance(entry, dict) else None
            if spec is None or audited is None:
                continue
            settings = audited if isinstance(audited, dict) else {"path": audited}
            named = {"name": f"{spec.label}{AUDITED}", "detector": "human_labels"}
            labels = {"columns": list(spec.plugin.kinds), **settings, **named}
            if audit := self.resolve("detectors", labels, (*location, at, "audited")):
                yield audit

    def _add_corrected(self, spec: PluginSpec) -> Iterator[PluginSpec]:
        """Yield a metric, and if its label is audited also the one with corrected values."""
        column = str(spec.parameters.get("label", ""))
        name = column.rpartition(".")[0] or column
        if name not in self.audited or "corrected" not in spec.parameters:
            yield spec
            return
        given = spec.parameters["corrected"]
        for corrected in (False, True) if given is None else (given,):
            parameters = spec.parameters | {"corrected": corrected}
            label = f"{spec.label}(corrected=True)" if corrected and not given else spec.label
            if not spec.is_labelled:
                shown = parameters if corrected else parameters | {"corrected": None}
                label = create_label("metrics", spec.plugin, spec.name, shown, spec.grouping)
            plugin = replace(spec.plugin, corrected=corrected)
            yield replace(spec, plugin=plugin, parameters=parameters, label=label)

    def resolve(
        self, kind: str, raw: Any, location: KeyPath, default_name: str = ""
    ) -> PluginSpec | None:
        """Return the plug-in of a name, or of a mapping with one, or None if it has a fault."""
        n_faults, spec = len(self.document.faults), None
        try:
            spec = self._read(kind, raw, location, default_name)
        except UserError as error:
            place = (*location, error.where) if error.where else location
            self.document.add_error(place, error)
        return spec if len(self.document.faults) == n_faults else None

    def _read(
        self, kind: str, raw: Any, location: KeyPath, default_name: str
    ) -> PluginSpec | None:
        name_key = "detector" if kind == "detectors" else "name"
        if not isinstance(raw, (str, dict)):
            message = f"must be a name or a mapping, found {describe_value(raw)}"
            raise WrongType(message, remedy="write - Name, or - {name: Name, setting: value}")
        entry = {name_key: raw} if isinstance(raw, str) else dict(raw)
        label = entry.pop("name", None) if kind == "detectors" else None
        name = entry.pop(name_key, default_name or label)
        is_named = isinstance(raw, str) or name_key in raw or default_name
        if not is_named and (nearest := find_nearest(name_key, map(str, entry), limit=1)):
            message, remedy = f"not a key of {location[0]}", f"did you mean {name_key}?"
            raise UnknownKey(message, where=nearest[0], remedy=remedy)
        if not isinstance(name, str) or not name:
            message = "has no name" if name is None else f"{describe_value(name)} is not a name"
            example = next(iter(self.registries[kind].table), "package/Name")
            raise WrongType(message, remedy=f"write {name_key}: {example}")
        name_location = location if isinstance(raw, str) else (*location, name_key)
        loaded = self._load(kind, name, name_location)
        if loaded is None:
            return None
        name, cls, settings = loaded
        for key in settings.keys() & entry.keys():
            message = f"{key} is given both in the name and as a setting"
            self.document.add_fault(
                (*location, key), message, remedy="give it once", kind=Contradiction
            )
        reader = _EntryReader(self, kind, name, cls, location)
        source = digest_source(name, base=self.document.mark(name_location).folder)
        return reader.read(entry | settings, label, source)

    def _load(
        self, kind: str, name: str, location: KeyPath
    ) -> tuple[str, type, dict[str, Any]] | None:
        """Return the name, the class, and the settings in the name: ``k`` of ``nDCG@10``."""
        registry, settings = self.registries[kind], dict[str, Any]()
        try:
            if kind == "metrics" and not is_file(name):
                name, settings = measures.parse_metric(name)
            folder = self.document.mark(location).folder
            return registry.resolve_name(name), registry.load(name, base=folder), settings
        except UserError as error:
            if isinstance(error, UnknownName):
                error.remedy = self._find_other_kind(name, kind) or error.remedy
            self.document.add_error(location, error)
        return None

    def _find_other_kind(self, name: str, kind: str) -> str:
        """Return the help line for a name that is a plug-in of another kind, else blank."""
        for other, registry in self.registries.items():
            if other != kind and (spelling := registry.find_spelling(name)):
                section = ".".join(SECTIONS[other])
                return f"{spelling} is a {registry.kind}: move it to {section}"
        return ""


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
        yield replace(spec, grouping=grouping.report(gap), label=f"{name}{suffix}{closing}")


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


# ---- one entry ----


@dataclass(frozen=True)
class _EntryReader:
    """Reads the entry of a plug-in; faults are recorded in the document."""

    resolver: Resolver
    kind: str
    name: str
    cls: type
    location: KeyPath

    @property
    def document(self) -> Document:
        """The document of the entry."""
        return self.resolver.document

    def read(self, entry: dict[str, Any], label: Any, source: str) -> PluginSpec | None:
        """Return the plug-in of an entry, or None if it has a fault.

        Args:
            entry: The keys of the entry, but for those that name the plug-in.
            label: The label of a detector, else None.
            source: The digest of the file of the plug-in, or blank.
        """
        n_faults, settings = len(self.document.faults), read_settings(self.cls)
        own_keys = _ENTRY_KEYS.get(self.kind, ("label",))
        keys = [key for key in own_keys if key in entry and key not in settings]
        given = {key: value for key in keys if (value := entry.pop(key)) is not None}
        label = self._check_label(given.get("label") if label is None else label)
        baseline = self._validate(bool, given.get("baseline"), "baseline")
        grouping = self._read_grouping({key: given[key] for key in _GROUPING if key in given})
        builder = Builder(
            *(self.document, shorten_name(self.name)),
            resolve_entry=self.resolver.resolve,
            entry_keys=own_keys,
        )
        raw = self._add_defaults(entry)
        plugin, search = self._read_searched(builder, raw, given.get("tune"))
        missing = list_missing(list_libraries(self.cls))
        if missing and len(self.document.faults) > n_faults:  # else all entries are checked later
            message, remedy = describe_missing([shorten_name(self.name)], missing)
            self.document.add_fault(self.location, message, remedy=remedy, kind=MissingExtra)
        if plugin is None:
            return None
        parameters = as_plain(plugin, builder.path_texts)
        made = create_label(self.kind, plugin, self.name, parameters, grouping)
        return PluginSpec(
            *(self.kind, self.name, label or made, plugin, parameters, self.location, source),
            tune=search,
            grouping=grouping,
            rerankers=self._read_rerankers(plugin, given.get("rerank")),
            is_labelled=bool(label),
            baseline=baseline,
        )

    def _add_defaults(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Return the settings of an entry with the cutoff and the device of the spec."""
        settings, k = read_settings(self.cls), read_settings(self.cls).get("k")
        if self.resolver.device is not None and "device" in settings:
            entry.setdefault("device", self.resolver.device)
        is_open = k is not None and not k.needed and k.default is None
        if self.kind == "metrics" and is_open and entry.get("k") is None:
            entry["k"] = self.resolver.k
        return entry

    def _check_label(self, label: Any) -> str:
        if label is None or (isinstance(label, str) and label and label.isprintable()):
            return label or ""
        key = "name" if self.kind == "detectors" else "label"
        message = f"must be text on one line, found {describe_value(label)}"
        self._blame(key, message, "put it in quotes", WrongType)
        return ""

    def _validate(self, hint: Any, raw: Any, key: str) -> Any:
        builder = Builder(self.document, key)
        return None if raw is None else builder.validate(hint, raw, (*self.location, key))

    def _read_grouping(self, given: dict[str, Any]) -> Grouping | None:
        if given and "by" not in given:
            for key in given:
                self._blame(key, f"{key} needs by", "add by: gender", Contradiction)
            return None
        builder = Builder(self.document, "by")
        return builder.build(Grouping, given, self.location) if given else None

    def _blame(self, key: str, message: str, remedy: str, kind: type[UserError]) -> None:
        self.document.add_fault((*self.location, key), message, remedy=remedy, kind=kind)

    # re-rankers of a model

    def _read_rerankers(self, model: Any, raw: Any) -> tuple[PluginSpec, ...]:
        """Return the re-rankers of an entry, or of a list; one for each value of its dial."""
        if raw is None:
            return ()
        if "lists" not in getattr(model, "provides", {"lists"}):
            remedy = "remove rerank, or choose a model that recommends lists, such as EASE"
            self._blame("rerank", "the model recommends no lists", remedy, Contradiction)
            return ()
        if raw == []:
            remedy = "name a re-ranker, or remove the key"
            self._blame("rerank", "is an empty list", remedy, WrongType)
        place = (*self.location, "rerank")
        entries = [(raw, place)]
        if isinstance(raw, list):
            entries = [(entry, (*place, at)) for at, entry in enumerate(raw)]
        specs, stated = list[PluginSpec](), list[dict[str, Any]]()
        for entry, where in entries:
            for version, settings in self._list_versions(entry, where):
                if (spec := self._read_reranker(version, where)) is not None:
                    specs.append(spec)
                    stated.append(settings)
        return tuple(distinguish_plugins(specs, stated))

    def _list_versions(
        self, entry: Any, location: KeyPath
    ) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Yield a re-ranker, once for each value of its dial, and what its label states."""
        folder = self.document.mark(location).folder
        given = entry if isinstance(entry, dict) else {}
        try:
            cls = self.resolver.registries["rerankers"].load(str(given.get("name")), base=folder)
        except UserError:  # reported where the entry is resolved
            cls = object
        dial = getattr(cls, "dial", "")
        values = given.get(dial)
        if not isinstance(values, list) or not values:
            yield entry, {}
            return
        if any(value in values[:at] for at, value in enumerate(values)):
            where, remedy = (*location, dial), "give each value once"
            self.document.add_fault(where, "has a value twice", remedy=remedy, kind=Contradiction)
        for value in values:
            yield given | {dial: value}, {dial: value}

    def _read_reranker(self, entry: Any, location: KeyPath) -> PluginSpec | None:
        spec, k = self.resolver.resolve("rerankers", entry, location), self.resolver.k
        n = None if spec is None else spec.parameters.get("candidates")
        if isinstance(n, int) and n < k:
            message = f"{n} candidates are fewer than k, which is {k}"
            where = (*location, "candidates") if "candidates" in entry else location
            remedy = f"set candidates: {max(100, 10 * k)}"
            self.document.add_fault(where, message, remedy=remedy, kind=OutOfRange)
        return spec

    # searches

    def _read_searched(
        self, builder: Builder, raw: Mapping[str, Any], tune: Any
    ) -> tuple[Any, Tune | None]:
        """Return the plug-in of ``raw``, None if it has a fault, and the search in ``tune``."""
        if tune is None:
            return builder.build(self.cls, raw, self.location), None
        space = tune.get("space") if isinstance(tune, dict) else None
        builder.searched = frozenset(space if isinstance(space, dict) else ())
        n_faults = len(self.document.faults)
        search = self._read_tune(builder, raw, tune, (*self.location, "tune"))
        if len(self.document.faults) > n_faults:
            builder.read_fields(self.cls, raw, self.location)
            return None, search
        builder.searched = frozenset(each.parameter for each in (search.space if search else ()))
        return build_base(builder, self.cls, raw, self.location, search), search

    def _read_tune(
        self, builder: Builder, raw: Mapping[str, Any], tune: Any, place: KeyPath
    ) -> Tune | None:
        """Return the search in the value ``tune`` of a model's entry."""
        document, reader = self.document, Builder(self.document, "tune")
        if not isinstance(tune, dict):
            reader.validate(TuneSpec, tune, place)  # a fault
            return None
        if isinstance(tune.get("space"), str):
            packaged = dict[str, Any]()
            with document.recording((*place, "space")):
                packaged = get_packaged_space(tune["space"], builder.owner)
            if not packaged:
                return None
            free = {name: value for name, value in packaged.items() if name not in raw}
            tune = tune | {"space": free}
        values = reader.read_fields(TuneSpec, tune, place)
        intervals = values.get("space", {})
        space = read_space(builder, self.cls, intervals, (*place, "space"))
        for name in [name for name in intervals if name in raw]:
            message = (
                f"is searched and also set, at {document.format_path((*self.location, name))}"
            )
            where, remedy = (*place, "space", name), "remove one of the two"
            document.add_fault(where, message, remedy=remedy, kind=Contradiction, key=True)
        if "metric" not in values:
            return None
        metric = self.resolver.resolve("metrics", values["metric"], (*place, "metric"))
        if metric is None or "space" not in values:
            return None
        spec = TuneSpec(**values)
        others = (spec.objective, spec.max_perplexity_increase)
        written = as_plain(spec)
        return Tune(metric, spec.trials, space, written, spec.pruning, spec.parallel, *others)


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
        remedy = f"it covers {models}; write the space: {{setting: {{log: [0.001, 1]}}}}"
        raise UnknownName(f"the search space {name!r} does not cover {model}", remedy=remedy)
    return dict(collections[name][model])


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
    builder.refuse_unknown(raw, settings, location, builder.owner)
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
    reader = Builder(builder.document, f"the interval of {setting.name}")
    if reader.validate(IntervalSpec, raw, location) is None:
        return None
    ((kind, values),) = raw.items()
    is_integer = kind == "int" or (kind != "choice" and int in types and float not in types)
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
    return Range(setting.name, values[0], values[1], kind == "log", is_integer)


# ---- labels: the settings in which entries of one plug-in differ ----

_LONGEST_VALUE = 60
"""The longest value in a label in characters; the middle of a longer one is left out."""


def create_label(
    kind: str,
    plugin: Any,
    name: str,
    parameters: Mapping[str, Any],
    grouping: Grouping | None,
) -> str:
    """Return the label of an entry without one.

    It is the name, for a metric with the settings that are not the default and change its
    value.
    """
    if kind != "metrics":
        return shorten_name(name)
    cls: type = type(plugin)
    settings = read_settings(cls)
    has_omitted = hasattr(plugin, "omitted_settings")
    omitted = {"k"} | (plugin.omitted_settings() if has_omitted else set())
    shown_settings = {
        key: _summarize_mapping(value, settings[key].hint)
        for key, value in parameters.items()
        if key not in omitted
        and (settings[key].needed or value != as_plain(settings[key].default))
    }
    if grouping is not None:
        shown_settings["by"] = grouping.by
        if grouping.gap not in {None, "groups"}:
            shown_settings["gap"] = grouping.gap
            shown_settings |= {"min_group": grouping.min_group} if grouping.min_group else {}
    return measures.format_metric(shorten_name(name), shown_settings)


def _summarize_mapping(value: Any, hint: Hint) -> Any:
    """Return a setting for the label of a metric; of a mapping, only the changed values."""
    plain = strip_annotations(hint)
    classes: list[Any] = [part for part in (plain, *get_args(plain)) if is_dataclass(part)]
    if not isinstance(value, Mapping) or not classes:
        return value
    settings = read_settings(classes[0])
    defaults = {name: as_plain(setting.default) for name, setting in settings.items()}
    return "/".join(str(item) for key, item in value.items() if item != defaults.get(key))


def shorten_name(name: str) -> str:
    """Return the class of ``./file.py:Name``; other names are returned unchanged."""
    return name.rpartition(":")[2] if is_file(name) else name


def distinguish_plugins(
    specs: Sequence[PluginSpec],
    written: Sequence[Mapping[str, Any]] = (),
    omitted: Collection[str] = (),
) -> list[PluginSpec]:
    """Return entries with labels that state the settings in which those of one plug-in differ.

    Entries with a label of their own keep it; equal entries keep one name and are refused later.

    Args:
        specs: Entries of models, re-rankers, datasets or tests.
        written: For each of them the settings that its label states in any case, as written.
        omitted: Settings that no label states, as they have columns of their own in the results.
    """
    differing = _find_differing(specs, [spec.name for spec in specs], omitted)
    labelled, owners = list(specs), dict[str, str]()
    for at, spec in enumerate(specs):
        settings = {**differing.get(at, {}), **(written[at] if written else {})}
        if settings:
            label = _make_unique(f"{spec.label}({_format(settings)})", settings, owners)
            labelled[at] = replace(spec, label=label, base_label=spec.label)
    return labelled


def distinguish_metrics(specs: Sequence[PluginSpec]) -> list[PluginSpec]:
    """Return metrics of which those with equal labels and cutoffs also state what differs.

    These are the settings that do not change the value, which labels of metrics omit otherwise.
    """
    labelled, owners = list(specs), dict[str, str]()
    same = [(spec.label, spec.cutoff) for spec in specs]
    for at, settings in _find_differing(specs, same).items():
        if settings:
            label = _add_settings(specs[at].label, _format(settings))
            labelled[at] = replace(specs[at], label=_make_unique(label, settings, owners))
    return labelled


def _find_differing(
    specs: Sequence[PluginSpec], identities: Sequence[Hashable], omitted: Collection[str] = ()
) -> dict[int, dict[str, Any]]:
    """Return the settings in which entries of one identity differ, by the position of the entry.

    These are all settings by path, what a search optimizes, and how a metric is grouped; entries
    with a label of their own have none.
    """
    groups: dict[Hashable, dict[int, dict[str, Any]]] = defaultdict(dict)
    for at, (spec, identity) in enumerate(zip(specs, identities, strict=True)):
        if not spec.is_labelled:
            tune = {} if spec.tune is None else {"tune": spec.tune.written}
            settings = dict(flatten_settings({**spec.parameters, **tune}))
            groups[identity][at] = settings | spec.split_settings
    differing = {}
    for members in groups.values():
        names = dict.fromkeys(chain(*members.values()))
        told = [
            name
            for name in names
            if len({repr(settings.get(name, ...)) for settings in members.values()}) > 1
        ]
        for at, settings in members.items():
            shown = [name for name in told if name in settings and name not in omitted]
            differing[at] = {name: settings[name] for name in shown}
    return differing


def _make_unique(label: str, settings: Mapping[str, Any], owners: MutableMapping[str, str]) -> str:
    """Return a label with a number if it is that of other settings, as of values that are cut.

    >>> owners = {}
    >>> [_make_unique("A(x=1 ... 2)", {"x": value}, owners) for value in ("132", "142", "132")]
    ['A(x=1 ... 2)', 'A(x=1 ... 2) #2', 'A(x=1 ... 2)']
    """
    identity, unique, n = repr(settings), label, 1
    while owners.setdefault(unique, identity) != identity:
        n += 1
        unique = f"{label} #{n}"
    return unique


def _format(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={format_value(value)}" for name, value in settings.items())


def format_value(value: Any) -> str:
    """Return a plain value as it stands in a label.

    >>> format_value(["a", 1])
    '[a, 1]'
    """
    return make_printable(render_yaml(value), _LONGEST_VALUE)


def _add_settings(label: str, settings: str) -> str:
    """Return a label of a metric with more settings in its parentheses.

    >>> _add_settings("nDCG(by=gender)", "min_group=5"), _add_settings("EAA", "repeats=3")
    ('nDCG(by=gender, min_group=5)', 'EAA(repeats=3)')
    """
    return f"{label[:-1]}, {settings})" if label.endswith(")") else f"{label}({settings})"
