"""What an attribute changes: the effect on each persona, followed by confidence sequences."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from recbias.audits.design import FEWEST, NEUTRAL, PLACEBO, RATIOS, Asked, ProbeSpec
from recbias.core.dataset import FloatArray
from recbias.core.errors import MissingEvidence
from recbias.core.text import flatten_settings, suggest
from recbias.language.endpoints import ChatReply
from recbias.statistics.confidence_sequences import (
    Bets,
    Betting,
    Exchangeable,
    find_interval,
)

_TRUE = {"true", "1", "yes"}
_TRIED = 20  # answers, or personas, after which an audit that has measured nothing stops


@dataclass(frozen=True)
class Shown:
    """What a reply shows: its items, and by effect their cells and a value, NaN if undefined.

    ``lacking`` is the number of items that have no value.
    """

    items: tuple[str, ...]
    cells: Mapping[str, Sequence[Any]]
    values: Mapping[str, float]
    lacking: Mapping[str, int]


def read_shown(spec: ProbeSpec, reply: str, table: Mapping[str, Mapping[str, str]]) -> Shown:
    """Return what the items of a reply show: fields of the item, else of the table of items.

    A price or popularity is the mean of the items that have one; its logarithm is compared.
    """
    items = json.loads(reply)
    ids = tuple(map(spec.endpoint.read_id, items))
    cells, values, lacking = dict[str, list[Any]](), dict[str, float](), dict[str, int]()
    for measured in spec.measured:
        name = measured.name
        if not measured.field:
            continue
        own = [spec.endpoint.read_field(item, measured.field) for item in items]
        cells[name] = [
            table.get(item, {}).get(measured.field) if cell is None else cell
            for item, cell in zip(ids, own, strict=True)
        ]
        if measured.is_ratio:
            numbers = [*filter(math.isfinite, map(_to_number, cells[name]))]
            mean = float(np.mean(numbers)) if numbers else 0.0
            values[name] = math.log(mean) if mean > 0 else math.nan
            lacking[name] = len(ids) - len(numbers)
        else:
            has = [_has(cell, measured.wanted) for cell in cells[name]]
            values[name] = float(np.mean(has)) if has else math.nan
            lacking[name] = cells[name].count(None)
    return Shown(ids, cells, values, lacking)


def _has(cell: Any, wanted: str) -> bool:
    texts = [str(part) for part in cell] if isinstance(cell, list) else str(cell).split("|")
    return wanted in texts if wanted else any(text.lower() in _TRUE for text in texts)


def _to_number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return math.nan


def measure_jaccard(pairs: Iterable[tuple[Shown, Shown]]) -> float:
    """Return the mean Jaccard index of pairs of lists; NaN where one is empty."""
    sets = [({*first.items}, {*second.items}) for first, second in pairs]
    if not all(first and second for first, second in sets):
        return math.nan
    return float(np.mean([len(first & second) / len(first | second) for first, second in sets]))


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
    _units: list[FloatArray] = field(default_factory=list, repr=False)

    def add(self, unit: FloatArray, margin: float) -> None:
        """Add the effect on a persona, a difference to each control, and look."""
        if np.isnan(unit).any():
            return
        self._units.append(unit)
        self.n, values = len(self._units), np.array(self._units)
        if self.effect in RATIOS:
            bets: Bets = Exchangeable()
            known = math.log1p(self.ci_low) if self.ci_low > -1 else -math.inf
            low, high = find_interval(bets, values, self.alpha, (known, math.log1p(self.ci_high)))
            centre, low, high = (
                math.expm1(min(each, 700.0)) for each in (float(values.mean()), low, high)
            )
        else:
            bets, values = Betting(-1.0, 1.0), values.mean(axis=1)
            ends = max(self.ci_low, -1.0), min(self.ci_high, 1.0)
            centre = float(values.mean())
            low, high = find_interval(bets, values, self.alpha, ends)
        self.estimate, self.ci_low, self.ci_high = centre, low, high
        self.e = max(self.e, math.exp(min(bets.log_e(values, 0.0)[-1], 700.0)))
        if self.e * self.alpha >= 1:
            self.verdict = self.verdict or "effect"
        elif self.n >= FEWEST and -margin < self.ci_low and self.ci_high < margin:
            self.verdict = self.verdict or "none"


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
        spec, names = self.spec, [each.name for each in self.spec.measured]
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
            self._require_fields(read, reply.text)
        if len(shown) == self.spec.n_for_each:
            self._look(shown)
        return self.is_in_vain or (self.spec.stop == "decided" and self.is_decided)

    def _require_fields(self, shown: Shown, reply: str) -> None:
        """Raise MissingEvidence if no item has a field."""
        endpoint = self.spec.endpoint
        if not self.n_items:
            message = f"none of {self.n_replies} answers has an item at {endpoint.items}"
            raise MissingEvidence(message, where="endpoint.items", remedy="check the path")
        for measured in self.spec.measured:
            name, path = measured.field, endpoint.fields.get(measured.field, measured.field)
            if not name or not shown.items or self.lacking[measured.name].total() < self.n_items:
                continue
            item = json.loads(reply)[0]
            fields = [*flatten_settings(item)] if isinstance(item, Mapping) else []
            message = f"no item of {self.n_replies} answers has {path}"
            remedy = suggest(path.removeprefix("$."), [field for field, _ in fields])
            if cells := [*filter(None, shown.cells[measured.name])]:
                message = f"{path} is a number in no item of {self.n_replies} answers: {cells[0]}"
                remedy = "give the path of a number, such as 2034.1"
            raise MissingEvidence(message, where=f"endpoint.fields.{name}", remedy=remedy)

    def _look(self, shown: Sequence[tuple[int, Shown]]) -> None:
        """Add the effects on a persona, all of whose replies are there."""
        spec, measured = self.spec, {each.name: each for each in self.spec.measured}
        arms = [[each for arm, each in shown if arm == at] for at in range(len(spec.arms))]
        floor = math.nan
        if "overlap" in measured:
            floor = measure_jaccard(product(arms[NEUTRAL], arms[PLACEBO]))
            self.floor.append(floor)
        for effect in self.effects:
            treated = arms[spec.arms.index((effect.attribute, effect.value))]
            if effect.effect == "overlap":
                controls = arms[NEUTRAL] + arms[PLACEBO]
                unit = np.array([measure_jaccard(product(controls, treated)) - floor])
            else:
                unit = _compare(effect.effect, treated, *arms[: spec.first_treated])
            effect.add(unit, measured[effect.effect].margin)
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


def _compare(name: str, treated: Sequence[Shown], *controls: Sequence[Shown]) -> FloatArray:
    """Return the mean of a value less that of each control: NaN where one is undefined."""
    means = [np.mean([shown.values[name] for shown in arm]) for arm in (treated, *controls)]
    return np.asarray(means[0] - np.array(means[1:]))
