"""The spec of a probe: who is asked about, how they differ, and in which order."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from annotated_types import Ge, Gt, Lt, MinLen

from recbias.audits.endpoint import Endpoint
from recbias.config.settings import Builder, as_plain
from recbias.config.source import find_spec, read_spec
from recbias.core.errors import Contradiction, OutOfRange
from recbias.core.files import compute_digest, digest_file
from recbias.core.plugins import EXECUTION, InputFile
from recbias.core.text import suggest
from recbias.formats.tables import read_text_table
from recbias.language.endpoints import ChatRequest

FEWEST = 20
"""The smallest number of personas: with fewer no difference could be decided."""

NEUTRAL, PLACEBO = 0, 1
"""The positions of the arms that have the reference value of every attribute."""

RATIOS = ("price", "popularity")


@dataclass(frozen=True, kw_only=True)
class Share:
    """The share of items with a label: ``{share: sponsored}``, ``{share: category=luxury}``."""

    share: Annotated[str, MinLen(1)]


EffectSpec: TypeAlias = Literal["overlap", "price", "popularity"] | Share


class Measured(NamedTuple):
    """An effect: what is measured of the items that are shown.

    Args:
        name: ``overlap``, ``price``, ``popularity``, ``share sponsored``.
        field: The field of the items; blank for the overlap.
        wanted: The value of the field of which the share is measured; blank for a true one.
        margin: The largest effect that does not matter; 0 if there is none.
    """

    name: str
    field: str
    wanted: str
    margin: float

    @property
    def is_ratio(self) -> bool:
        """Whether effects are relative."""
        return self.name in RATIOS


def read_rows(path: Path, *needed: str) -> list[dict[str, str]]:
    """Return the rows of a table as text, which has some columns."""
    table = read_text_table(path)
    table.need(*needed)
    cells = zip(*(table.texts(name) for name in table.columns), strict=True)
    return [dict(zip(table.columns, row, strict=True)) for row in cells]


@dataclass(frozen=True, kw_only=True)
class Personas:
    """Who is asked about: base personas, and the attributes in which copies of each differ.

    Args:
        attributes: The values of each attribute, the reference first: ``job: [engineer,
            retired]``. A value may set several places: ``gender: {man: {name: [Jim, Ben]}, woman:
            ...}``; a list gives each persona one of its values, at the same position for every
            value.
        base: What else the personas have, as lists that are combined: ``city: [Rome, Lyon]``.
        path: A table of base personas instead, one in each row.
        count: The number of base personas; by default all, or as many as the budget allows.
    """

    attributes: Mapping[str, Any]
    base: Mapping[str, Annotated[list[Any], MinLen(1)]] = field(default_factory=dict)
    path: InputFile | None = None
    count: Annotated[int, Ge(FEWEST)] | None = None

    @cached_property
    def arms(self) -> dict[str, dict[str, Any]]:
        """What each value sets, by attribute."""
        arms = {}
        for name, values in self.attributes.items():
            arm = values
            if isinstance(values, list):
                arm = {str(value): {name: value} for value in values}
            is_valid = isinstance(arm, Mapping) and len(arm) > 1
            if not is_valid or not all(isinstance(each, Mapping) for each in arm.values()):
                message = f"{name} must have two values or more, the reference first"
                remedy = f"write {name}: [a, b], or {name}: {{a: {{{name}: a}}, b: ...}}"
                raise OutOfRange(message, remedy=remedy)
            arms[name] = dict(arm)
        return arms

    def __post_init__(self) -> None:
        if not self.arms:
            raise OutOfRange("attributes is empty", remedy="write attributes: {job: [a, b]}")
        if self.base and self.path:
            raise Contradiction("base and path are both given", remedy="leave one out")

    @cached_property
    def _rows(self) -> list[dict[str, str]]:
        return read_rows(self.path) if self.path else []

    @property
    def n_available(self) -> int:
        """The number of different base personas."""
        return len(self._rows) or math.prod(len(values) for values in self.base.values())

    def get(self, number: int) -> Mapping[str, Any]:
        """Return a base persona by its number."""
        if self._rows:
            return self._rows[number]
        persona = {}
        for name, values in self.base.items():
            number, at = divmod(number, len(values))
            persona[name] = values[at]
        return persona


@dataclass(frozen=True, kw_only=True)
class RequestBudget:
    """The most requests that are sent, repeated ones included."""

    requests: Annotated[int, Ge(1)]


@dataclass(frozen=True, kw_only=True)
class ProbeSpec:
    """A live audit of an endpoint.

    Args:
        name: The folder of its results.
        endpoint: What is asked.
        personas: Who is asked about.
        effects: What may differ: ``overlap``, ``price``, ``popularity``, ``{share: LABEL}``.
        items: A table with ``item_id`` and further fields of items.
        repeats: How often each request is sent.
        placebo: Whether each neutral request is sent twice as often: the noise that overlap is
            compared with, and whether the endpoint learns from being asked.
        rate: The most requests in a minute.
        budget: The most requests.
        alpha: The probability that any effect is decided where there is none.
        margin: The largest effect of each kind that does not matter: ``{price: 0.02}``. Without
            one it is never decided that there is no effect.
        stop: ``decided`` stops when every effect is decided; ``budget`` goes on.
    """

    name: Annotated[str, MinLen(1)]
    endpoint: Endpoint
    personas: Personas
    effects: Annotated[list[EffectSpec], MinLen(1)]
    items: InputFile | None = None
    repeats: Annotated[int, Ge(1)] = 1
    placebo: bool = True
    rate: Annotated[Annotated[float, Gt(0)] | None, EXECUTION] = None
    budget: RequestBudget
    alpha: Annotated[float, Gt(0), Lt(1)] = 0.05
    margin: Mapping[str, Annotated[float, Gt(0)]] = field(default_factory=dict)
    stop: Literal["decided", "budget"] = "decided"

    def __post_init__(self) -> None:
        if "overlap" in self.effects and not self.placebo:
            message = "overlap is compared with that of requests that differ in nothing"
            raise Contradiction(message, remedy="set placebo: true, or leave overlap out")
        kinds = {each.name for each in self.measured} | {"share"}
        for name in self.margin:
            if name not in kinds:
                raise OutOfRange(f"margin has no effect {name}", remedy=suggest(name, kinds))
        given = {*self.personas.get(0)}
        for attribute, values in self.personas.arms.items():
            own = {name for each in values.values() for name in each}
            if not own & self.endpoint.places:
                remedy = f"write {{{min(own)}}} where it belongs: in url, parameters or body"
                raise Contradiction(f"no request has {attribute}", remedy=remedy)
            given |= own
        if unknown := sorted(self.endpoint.places - given):
            remedy = f"add it to personas.base; {suggest(unknown[0], given)}"
            raise OutOfRange(f"nothing stands for {{{unknown[0]}}}", remedy=remedy)
        if self.n_personas < FEWEST:
            message = f"{self.n_personas} personas can be asked, fewer than {FEWEST}"
            remedy = "add values to personas.base, or raise budget.requests"
            raise OutOfRange(message, remedy=remedy)

    @cached_property
    def arms(self) -> list[tuple[str, str]]:
        """The attribute and the value of each arm; blank for the neutral one and the placebo."""
        treated = [
            (name, value)
            for name, values in self.personas.arms.items()
            for value in list(values)[1:]
        ]
        return [("", ""), *([("", "")] if self.placebo else []), *treated]

    @property
    def first_treated(self) -> int:
        """The position of the first arm with another value."""
        return PLACEBO + self.placebo

    @property
    def n_for_each(self) -> int:
        """The number of requests for each persona."""
        return self.repeats * len(self.arms)

    @property
    def n_personas(self) -> int:
        """The number of base personas that can be asked about."""
        most = self.budget.requests // self.n_for_each
        return min(most, self.personas.count or most, self.personas.n_available)

    @cached_property
    def measured(self) -> list[Measured]:
        """The effects."""
        found = []
        for effect in self.effects:
            kind, name, wanted = str(effect), str(effect), ""
            field_of = "" if effect == "overlap" else kind
            if isinstance(effect, Share):
                kind, name = "share", f"share {effect.share}"
                field_of, _, wanted = effect.share.partition("=")
            margin = self.margin.get(name, self.margin.get(kind, 0.0))
            found.append(Measured(name, field_of, wanted, margin))
        return found

    @property
    def digest(self) -> str:
        """The digest of the audit: an interrupted one is resumed by the same spec."""
        plain = as_plain(self)
        plain["endpoint"] = {
            key: value
            for key, value in plain["endpoint"].items()
            if key not in {"retries", "timeout_s"}
        }
        files = [path for path in (self.items, self.personas.path) if path]
        return compute_digest({**plain, "rate": None, "files": [*map(digest_file, files)]})


@dataclass(frozen=True)
class Asked:
    """A request, and what it is about: the persona, the arm and the number of its repetition."""

    request: ChatRequest
    persona: int
    arm: int


def list_requests(spec: ProbeSpec, seed: int) -> Iterator[Asked]:
    """Yield the requests: personas in random order, and those of each in random order.

    Args:
        spec: The audit.
        seed: A number that the endpoint cannot know.
    """
    chance = random.Random(seed)
    neutral = [(name, next(iter(values))) for name, values in spec.personas.arms.items()]
    numbers = chance.sample(range(spec.personas.n_available), spec.n_personas)
    for persona, number in enumerate(numbers):
        base, share = spec.personas.get(number), chance.random()
        block = [(arm, repeat) for arm in range(len(spec.arms)) for repeat in range(spec.repeats)]
        chance.shuffle(block)
        for arm, repeat in block:
            chosen = {**dict(neutral), **dict([spec.arms[arm]] if spec.arms[arm][0] else [])}
            values = {**base, **_set_values(spec, chosen, share)}
            sample = (persona * len(spec.arms) + arm) * spec.repeats + repeat
            yield Asked(spec.endpoint.make_request(values, sample), persona, arm)


def _set_values(spec: ProbeSpec, chosen: Mapping[str, str], share: float) -> dict[str, Any]:
    """Return what the values of the attributes set; of a list, the one at a share of it."""
    values: dict[str, Any] = {}
    for attribute, value in chosen.items():
        for name, given in spec.personas.arms[attribute][value].items():
            values[name] = given[int(share * len(given))] if isinstance(given, list) else given
    return values


def read_probe(
    source: Path | Mapping[str, Any] | str, overrides: Sequence[str] = ()
) -> tuple[ProbeSpec, dict[str, Any]]:
    """Return the spec of a probe, and its text as plain data with all defaults.

    Raises:
        UserError: The spec has faults; all of them at once.
    """
    document = read_spec(
        source if isinstance(source, Mapping) else find_spec(Path(source)), overrides
    )
    builder = Builder(document, "a probe")
    spec = builder.build(ProbeSpec, document.data, ())
    document.refuse()
    return spec, as_plain(spec, builder.path_texts)
