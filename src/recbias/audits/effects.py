"""What an attribute changes: the effect on each persona, followed by confidence sequences."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from recbias.audits.design import (
    FEWEST,
    NEUTRAL,
    PLACEBO,
    RATIOS,
    Asked,
    EffectSpec,
    ProbeSpec,
    Share,
    name_effect,
)
from recbias.core.errors import MissingEvidence
from recbias.core.text import flatten_settings, suggest
from recbias.language.endpoints import ChatReply
from recbias.metrics.identity import measure_overlap
from recbias.statistics.confidence_sequences import Bets, Betting, NormalMixture, find_interval

_TRUE = {"true", "1", "yes"}
_TRIED = 20  # answers, or personas, after which an audit that has measured nothing stops


@dataclass(frozen=True)
class Shown:
    """What a reply shows: its items, and values of effects, NaN if undefined.

    ``lacking`` is the number of items that have no value, by the name of the effect.
    """

    items: tuple[str, ...]
    values: Mapping[str, float]
    lacking: Mapping[str, int]


def read_shown(spec: ProbeSpec, reply: str, table: Mapping[str, Mapping[str, str]]) -> Shown:
    """Return what the items of a reply show.

    A price or popularity is the mean of the items that have one; its logarithm is compared.
    """
    ids, cells = _read_cells(spec, reply, table)
    values, lacking = {}, {}
    for effect in spec.effects:
        if isinstance(effect, Share):
            field_of, _, wanted = effect.share.partition("=")
            name = name_effect(effect)
            has = [_has(cell, wanted) for cell in cells[field_of]]
            values[name] = float(np.mean(has)) if has else math.nan
            lacking[name] = cells[field_of].count(None)
        elif effect in RATIOS:
            numbers = [
                number for cell in cells[effect] if (number := _to_number(cell)) is not None
            ]
            mean = float(np.mean(numbers)) if numbers else 0.0
            values[effect] = math.log(mean) if mean > 0 else math.nan
            lacking[effect] = len(ids) - len(numbers)
    return Shown(ids, values, lacking)


def _read_cells(
    spec: ProbeSpec, reply: str, table: Mapping[str, Mapping[str, str]]
) -> tuple[tuple[str, ...], dict[str, list[Any]]]:
    """Return the items of a reply, and their fields: of the item, else of the table of items."""
    items = json.loads(reply)
    ids = tuple(spec.endpoint.read_id(item) for item in items)
    cells = {}
    for name in filter(None, map(_name_field, spec.effects)):
        own = (spec.endpoint.read_field(item, name) for item in items)
        cells[name] = [
            table.get(item, {}).get(name) if cell is None else cell
            for item, cell in zip(ids, own, strict=True)
        ]
    return ids, cells


def _name_field(effect: EffectSpec) -> str:
    """Return the field of the items that an effect is of; blank for overlap."""
    if isinstance(effect, Share):
        return effect.share.partition("=")[0]
    return effect if effect in RATIOS else ""


def _has(cell: Any, wanted: str) -> bool:
    texts = [str(part) for part in cell] if isinstance(cell, list) else str(cell).split("|")
    return wanted in texts if wanted else any(text.lower() in _TRUE for text in texts)


def _to_number(cell: Any) -> float | None:
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def measure_jaccard(pairs: Sequence[tuple[Shown, Shown]]) -> float:
    """Return the mean Jaccard index of pairs of lists; NaN where one is empty."""
    rows = []
    for pair in pairs:
        codes = {
            item: at for at, item in enumerate(dict.fromkeys((*pair[0].items, *pair[1].items)))
        }
        k = max(len(shown.items) for shown in pair)
        if not min(len(shown.items) for shown in pair):
            return math.nan
        first, second = (
            np.array([[*map(codes.__getitem__, shown.items), *[-1] * (k - len(shown.items))]])
            for shown in pair
        )
        rows.append(measure_overlap(first, second, "jaccard").item())
    return float(np.mean(rows))


@dataclass
class Effect:
    """One effect of one value of an attribute, or of a placebo, as it stands.

    Args:
        attribute: The attribute; blank for a placebo.
        value: Its value.
        effect: The name of the effect.
        alpha: The level of its interval: that of the audit divided by the size of its family.
        estimate: The mean over the personas: of price and popularity relative, ``0.04`` for 4 %
            more; of shares and overlap a difference.
        ci_low: The lower end of the confidence sequence, the highest until now.
        ci_high: The upper end, the lowest until now.
        e: The largest e-value of "no effect" until now.
        n: The number of personas.
        verdict: ``effect``, ``none`` where it is within the margin, blank while undecided.
    """

    attribute: str
    value: str
    effect: str
    alpha: float
    estimate: float = math.nan
    ci_low: float = -math.inf
    ci_high: float = math.inf
    e: float = 1.0
    n: int = 0
    verdict: str = ""
    _units: list[float] = field(default_factory=list, repr=False)

    @property
    def _is_ratio(self) -> bool:
        return self.effect in RATIOS

    def add(self, unit: float, margin: float) -> None:
        """Add the effect on a persona, and look."""
        if math.isnan(unit):
            return
        self._units.append(unit)
        self.n, values = len(self._units), np.array(self._units)
        bets: Bets = Betting(-1.0, 1.0, self.alpha)
        if self._is_ratio:
            bets = NormalMixture(alpha=self.alpha)
        low, high = find_interval(bets, values, self.alpha)
        self.e = max(self.e, math.exp(min(bets.log_e(values, 0.0)[-1], 700.0)))
        self.estimate = self._scale(float(values.mean()))
        self.ci_low = max(self.ci_low, self._scale(low))
        self.ci_high = min(self.ci_high, self._scale(high))
        if self.e * self.alpha >= 1:
            self.verdict = self.verdict or "effect"
        elif self.n >= FEWEST and -margin < self.ci_low and self.ci_high < margin:
            self.verdict = self.verdict or "none"

    def _scale(self, value: float) -> float:
        return math.expm1(min(value, 700.0)) if self._is_ratio else value


@dataclass
class Ledger:
    """The replies of an audit by persona, and the effects that they show.

    Args:
        looks: The rows of every look: one after each persona.
        floor: The overlap of identical requests, of each persona.
        n_items: The number of items of all answers.
        lacking: The number of those without a value, by effect and by value of the attribute.
        empty: The number of answers without items, by the value of the attribute.
    """

    spec: ProbeSpec
    table: Mapping[str, Mapping[str, str]]
    n_replies: int = 0
    looks: list[dict[str, Any]] = field(default_factory=list)
    floor: list[float] = field(default_factory=list)
    n_items: int = 0
    lacking: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    empty: Counter[str] = field(default_factory=Counter)
    _shown: dict[int, list[tuple[int, Shown]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        spec, names = self.spec, [*map(name_effect, self.spec.effects)]
        treated = spec.arms[spec.first_treated :]
        alpha = spec.alpha / (len(treated) * len(names))
        self.effects = [Effect(*arm, name, alpha) for arm in treated for name in names]
        drifting = [name for name in names if name != "overlap"] if spec.placebo else []
        self.placebos = [Effect("", "", name, spec.alpha / len(drifting)) for name in drifting]

    @property
    def is_decided(self) -> bool:
        """Whether every effect is decided."""
        return all(effect.verdict for effect in self.effects)

    @property
    def n_complete(self) -> int:
        """The number of personas with all replies."""
        return sum(len(shown) == self.spec.n_for_each for shown in self._shown.values())

    @property
    def is_in_vain(self) -> bool:
        """Whether many personas were asked about, and no undecided effect has a value."""
        is_open = [effect.n == 0 for effect in self.effects if not effect.verdict]
        return self.n_complete >= _TRIED and bool(is_open) and all(is_open)

    def add(self, asked: Asked, reply: ChatReply) -> bool:
        """Add a reply; return whether no other one is needed.

        Raises:
            MissingEvidence: No item of many answers has a field that is compared.
        """
        shown = self._shown[asked.persona]
        read = read_shown(self.spec, reply.text, self.table)
        shown.append((asked.arm, read))
        self.n_replies += 1
        self.n_items += len(read.items)
        _, value = self.spec.arms[asked.arm]
        self.empty[value] += not read.items
        for name, n in read.lacking.items():
            self.lacking[name][value] += n
        if self.n_replies >= _TRIED:
            self._require_fields(reply.text)
        if len(shown) == self.spec.n_for_each:
            self._look(shown)
        return self.is_in_vain or (self.spec.stop == "decided" and self.is_decided)

    def _require_fields(self, reply: str) -> None:
        """Raise MissingEvidence if no item has a field."""
        endpoint = self.spec.endpoint
        if not self.n_items:
            message = f"none of {self.n_replies} answers has an item at {endpoint.items}"
            raise MissingEvidence(message, where="endpoint.items", remedy="check the path")
        for effect in self.spec.effects:
            name, items = _name_field(effect), json.loads(reply)
            n_lacking = self.lacking[name_effect(effect)].total() if name else 0
            if not items or n_lacking < self.n_items:
                continue
            path = endpoint.fields.get(name, name)
            cells = [cell for cell in _read_cells(self.spec, reply, self.table)[1][name] if cell]
            message = f"no item of {self.n_replies} answers has {path}"
            fields = [*flatten_settings(items[0])] if isinstance(items[0], Mapping) else []
            remedy = suggest(path.removeprefix("$."), [field for field, _ in fields])
            if cells:
                message = f"{path} is a number in no item of {self.n_replies} answers: {cells[0]}"
                remedy = "give the path of a number, such as 2034.1"
            raise MissingEvidence(message, where=f"endpoint.fields.{name}", remedy=remedy)

    def _look(self, shown: Sequence[tuple[int, Shown]]) -> None:
        spec = self.spec
        arms = [[each for arm, each in shown if arm == at] for at in range(len(spec.arms))]
        kinds = {name_effect(effect): effect for effect in spec.effects}
        floor = math.nan
        if "overlap" in kinds:
            floor = measure_jaccard([(a, b) for a in arms[NEUTRAL] for b in arms[PLACEBO]])
            self.floor.append(floor)
        for effect in self.effects:
            treated = arms[spec.arms.index((effect.attribute, effect.value))]
            if effect.effect == "overlap":
                controls = arms[NEUTRAL] + arms[PLACEBO]
                unit = measure_jaccard([(a, b) for a in controls for b in treated]) - floor
            else:
                unit = _compare(effect.effect, treated, arms[NEUTRAL])
            effect.add(unit, spec.get_margin(kinds[effect.effect]))
        same = [each for arm, each in shown if arm in {NEUTRAL, PLACEBO}]
        for placebo in self.placebos:  # the later half less the earlier half of equal requests
            half = len(same) // 2
            placebo.add(_compare(placebo.effect, same[half:], same[:half]), 0.0)
        self.looks += [*self.list_rows()]

    def list_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the effects, and the placebos, as they stand."""
        for effect in (*self.effects, *self.placebos):
            row = {key: value for key, value in asdict(effect).items() if not key.startswith("_")}
            row["kind"] = "effect" if effect.attribute else "placebo"
            yield {"requests": self.n_replies, **row}

    def tabulate(self) -> pd.DataFrame:
        """Return every look."""
        columns = ["requests", "kind", *Effect.__dataclass_fields__][:-1]
        return pd.DataFrame(self.looks, columns=columns)


def _compare(name: str, treated: Sequence[Shown], control: Sequence[Shown]) -> float:
    """Return the mean of a value less that of others: NaN where one is undefined."""
    means = [float(np.mean([shown.values[name] for shown in arm])) for arm in (treated, control)]
    return means[0] - means[1]
