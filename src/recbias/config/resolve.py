"""From an entry of a spec to the plug-in that it chose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any

from recbias.config.build import Builder
from recbias.config.plugin_spec import GAPS, DatasetSpec, Grouping, PluginSpec, Tune
from recbias.config.search_space import read_space
from recbias.config.settings import Hint, plain, settings
from recbias.config.spaces import packaged
from recbias.config.specs import SECTIONS, TuneSpec
from recbias.config.type_text import bare, shown
from recbias.core.errors import (
    Contradiction,
    MissingFile,
    OutOfRange,
    UnknownName,
    UserError,
    WrongType,
)
from recbias.core.measurements import metric_names
from recbias.core.queries.groups import validate_by
from recbias.core.registry import Registry, is_file, source_digest
from recbias.core.suggestions import suggest
from recbias.formats.yaml.source_map import Document, Place, key_path


@dataclass(frozen=True)
class Chooser:
    """Reads entries; faults go to the document.

    Args:
        document: The spec.
        registries: The plug-ins, by kind.
        k: The length of the lists, which metrics without a cutoff take.
    """

    document: Document
    registries: Mapping[str, Registry]
    k: int

    def dataset(self, raw: Any, place: Place) -> DatasetSpec | None:
        """Return a dataset with its filters."""
        steps: Any = []
        if isinstance(raw, dict) and "filters" in raw:
            raw = dict(raw)
            steps = raw.pop("filters") or []
        source = self.choose("datasets", raw, place)
        filters = self.several("filters", steps, (*place, "filters"))
        return DatasetSpec(source, filters, source.label) if source else None

    def several(self, kind: str, raw: Any, place: Place) -> tuple[PluginSpec, ...]:
        """Return the plug-ins of a list."""
        if not isinstance(raw, (list, tuple)):
            found = f"must be a list, found {shown(raw)}"
            self.document.blame(place, found, remedy="write each after a dash", kind=WrongType)
            return ()
        made = [self.choose(kind, each, (*place, at)) for at, each in enumerate(raw)]
        return tuple(one for each in made if each is not None for one in _spread(each))

    def choose(self, kind: str, raw: Any, place: Place, usual: str = "") -> PluginSpec | None:
        """Return one plug-in, or None where it has a fault.

        Args:
            kind: The key of its registry.
            raw: A name, or a mapping with a name.
            place: Where it stands.
            usual: The name where the mapping has none.
        """
        before = len(self.document.faults)
        try:
            made = self._entry(kind, raw, place, usual)
        except UserError as error:
            self.document.carry(place, error)
            return None
        return made if len(self.document.faults) == before else None

    def _entry(self, kind: str, raw: Any, place: Place, usual: str) -> PluginSpec | None:
        name_key = "detector" if kind == "detectors" else "name"
        given = {name_key: raw} if isinstance(raw, str) else raw
        if not isinstance(given, dict):
            found = f"must be a name or a mapping, found {shown(raw)}"
            raise WrongType(found, remedy="write - Name, or - {name: Name, setting: value}")
        given = dict(given)
        label = given.pop("name", None) if kind == "detectors" else None
        name = given.pop(name_key, usual or label)
        here = place if isinstance(raw, str) else (*place, name_key)
        if not isinstance(name, str) or not name:
            found = "has no name" if name is None else f"{shown(name)} is not a name"
            raise WrongType(found, remedy=f"write {name_key}: {self._example(kind)}")
        return _Entry(self, kind, place, here).read(name, given, label)

    def _example(self, kind: str) -> str:
        names = list(self.registries[kind].table)
        return names[0] if names else "package/Name"

    def hint(self, name: str, kind: str) -> str:
        """Return the help line for a name that is a plug-in of another kind, else blank."""
        for other, registry in self.registries.items():
            if other == kind:
                continue
            try:
                found = registry.canonical(name)
            except UnknownName:
                continue
            return f"{found} is a {registry.kind}: it goes under {'.'.join(SECTIONS[other])}"
        return ""


@dataclass(frozen=True)
class _Entry:
    """One entry that is read: its place, and the place of its name."""

    chooser: Chooser
    kind: str
    place: Place
    name_place: Place

    @property
    def document(self) -> Document:
        return self.chooser.document

    def read(self, written: str, given: dict[str, Any], label: Any) -> PluginSpec | None:
        notation = self._parsed(written)
        if notation is None:
            return None
        name, inner = notation
        loaded = self._loaded(name)
        if loaded is None:
            return None
        name, cls = loaded
        label, tune = self._label(cls, given, label), self._taken(cls, given, "tune", "models")
        grouping = self._grouping(cls, given)
        raw = self._settings(cls, given, inner)
        builder = Builder(self.document, _short(name))
        search = self._tune(builder, cls, raw, tune) if tune is not None else None
        plugin = builder.build(cls, raw, self.place)
        if plugin is None:
            return None
        parameters = plain(plugin, builder.written)
        shown_name = label or self._own_label(cls, name, parameters, grouping)
        source = source_digest(name, base=self._folder)
        made = PluginSpec(
            self.kind, name, shown_name, plugin, parameters, self.place, source, search
        )
        return made if grouping is None else replace(made, grouping=grouping)

    @property
    def _folder(self) -> Path:
        return self.document.mark(self.name_place).folder

    def _parsed(self, written: str) -> tuple[str, dict[str, Any]] | None:
        if self.kind != "metrics" or is_file(written):
            return written, {}
        try:
            return metric_names.parse(written)
        except UserError as error:
            self.document.carry(self.name_place, error)
            return None

    def _loaded(self, name: str) -> tuple[str, type] | None:
        registry = self.chooser.registries[self.kind]
        try:
            return registry.canonical(name), registry.load(name, base=self._folder)
        except UnknownName as error:
            remedy = self.chooser.hint(name, self.kind) or error.remedy
            self.document.blame(self.name_place, error.message, remedy=remedy, kind=UnknownName)
        except MissingFile as error:
            remedy = error.remedy
            self.document.blame(self.name_place, str(error), remedy=remedy, kind=MissingFile)
        except UserError as error:
            self.document.carry(self.name_place, error)
        return None

    def _taken(self, cls: type, given: dict[str, Any], key: str, kind: str = "") -> Any:
        """Return what stands under a key of the entry that is no setting of its plug-in."""
        if key in settings(cls) or (kind and kind != self.kind):
            return None
        return given.pop(key, None)

    def _grouping(self, cls: type, given: dict[str, Any]) -> Grouping | None:
        """Return how a metric is split by a label of the queries, None where it is not."""
        by = self._taken(cls, given, "by", "metrics")
        gap = self._taken(cls, given, "gap", "metrics") if by is not None else None
        if by is None:
            return None
        if not isinstance(by, str):
            found = f"must be text, found {shown(by)}"
            remedy = "name a label of the queries, or several: by: gender&race"
            self.document.blame((*self.place, "by"), found, remedy=remedy, kind=WrongType)
            return None
        try:
            validate_by(by)
        except UserError as error:
            self.document.carry((*self.place, "by"), error)
        if gap is not None and gap not in GAPS:
            found = f"must be one of {', '.join(GAPS)}, found {shown(gap)}"
            remedy = suggest(str(gap), GAPS) + ", or leave it out for all"
            self.document.blame((*self.place, "gap"), found, remedy=remedy, kind=OutOfRange)
            return None
        return Grouping(by, gap or "")

    def _label(self, cls: type, given: dict[str, Any], label: Any) -> str:
        place = (*self.place, "name" if self.kind == "detectors" else "label")
        label = label if label is not None else self._taken(cls, given, "label")
        if label is None or (isinstance(label, str) and label and label.isprintable()):
            return label or ""
        found = f"must be text on one line, found {shown(label)}"
        self.document.blame(place, found, remedy="put it in quotes", kind=WrongType)
        return ""

    def _settings(
        self, cls: type, given: dict[str, Any], inner: Mapping[str, Any]
    ) -> dict[str, Any]:
        for key in inner.keys() & given.keys():
            found = f"{key} is given both in the name and as a setting"
            remedy = "give it once"
            self.document.blame((*self.place, key), found, remedy=remedy, kind=Contradiction)
        raw = given | dict(inner)
        cutoff = settings(cls).get("k")
        open_ = cutoff is not None and not cutoff.needed and cutoff.default is None
        if self.kind == "metrics" and open_ and raw.get("k") is None:
            raw["k"] = self.chooser.k
        return raw

    def _own_label(
        self, cls: type, name: str, parameters: Mapping[str, Any], grouping: Grouping | None
    ) -> str:
        if self.kind != "metrics":
            return _short(name)
        known = settings(cls)
        chosen = {
            key: _brief(value, known[key].hint)
            for key, value in parameters.items()
            if key != "k" and (known[key].needed or value != plain(known[key].default))
        }
        if grouping is not None:
            chosen |= {"by": grouping.by} | _named_gap(grouping)
        return metric_names.show(_short(name), chosen)

    def _tune(self, builder: Builder, cls: type, raw: Mapping[str, Any], tune: Any) -> Tune | None:
        place = (*self.place, "tune")
        if not isinstance(tune, dict):
            found = f"must be a mapping, found {shown(tune)}"
            remedy = "write tune: {metric: nDCG@10, trials: 20, space: {...}}"
            self.document.blame(place, found, remedy=remedy, kind=WrongType)
            return None
        if isinstance(tune.get("space"), str):
            named = self._packaged(tune["space"], builder.owner, raw)
            if named is None:
                return None
            tune = tune | {"space": named}
        values = Builder(self.document, "tune").values(TuneSpec, tune, place)
        drawn = values.get("space", {})
        space = read_space(builder, cls, drawn, (*place, "space")) if drawn else ()
        for name in [each for each in drawn if each in raw]:
            first = key_path((*self.place, name))
            found, remedy = f"is searched and also set, at {first}", "keep one of the two"
            inner = (*place, "space", name)
            self.document.blame(inner, found, remedy=remedy, kind=Contradiction, key=True)
        if "metric" not in values:
            return None
        metric = self.chooser.choose("metrics", values["metric"], (*place, "metric"))
        if metric is None or "space" not in values:
            return None
        spec = TuneSpec(**values)
        return Tune(metric, spec.trials, space, plain(spec), spec.pruning, spec.parallel)

    def _packaged(self, name: str, model: str, raw: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a space that comes with the package, without what the entry sets itself."""
        try:
            found = packaged(name, model)
        except UserError as error:
            self.document.carry((*self.place, "tune", "space"), error)
            return None
        return {key: each for key, each in found.items() if key not in raw}


def _spread(chosen: PluginSpec) -> Iterator[PluginSpec]:
    """Yield an entry; one that is split by a label without saying how, in each way."""
    grouping = chosen.grouping
    if grouping is None or grouping.gap:
        yield chosen
        return
    for gap in GAPS:
        behind = "" if gap == "groups" else f", gap={gap}"
        label = chosen.label
        label = f"{label[:-1]}{behind})" if label.endswith(")") else label + behind
        yield replace(chosen, grouping=replace(grouping, gap=gap), label=label)


def _named_gap(grouping: Grouping) -> dict[str, str]:
    return {} if grouping.gap in {"", "groups"} else {"gap": grouping.gap}


def _brief(value: Any, hint: Hint) -> Any:
    """Return a setting as a metric's name shows it: of a mapping, what is not as by default."""
    if not isinstance(value, Mapping) or not is_dataclass(bare(hint)):
        return value
    usual = {name: plain(each.default) for name, each in settings(bare(hint)).items()}
    return "/".join(str(each) for key, each in value.items() if each != usual.get(key))


def _short(name: str) -> str:
    """Return the class of ``./file.py:Name``, or a name as it is."""
    return name.rpartition(":")[2] if is_file(name) else name
