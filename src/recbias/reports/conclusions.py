"""The conclusions of a run in plain sentences, no stronger than its tests.

Each question has one, and re-ranking, feedback and metrics without a test have their own. A
sentence has at most 25 words where names allow it; how it was found stands beside it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

from recbias.core.measures import ALL, CONTROL, DATASET, SERVED, read_bounds, to_loss
from recbias.reports import views
from recbias.reports.plots import collect_curves
from recbias.reports.run import RunTables
from recbias.reports.views import (
    DIRECTION_LABELS,
    ZERO,
    Definition,
    Question,
    Row,
    collect_questions,
    compute_effect,
    find_worst_groups,
    includes_zero,
    lacks_spread,
    name_unit,
    orient,
    rank_effect,
)
from recbias.reports.wording import (
    count_decimals,
    format_count,
    format_estimate,
    format_p_value,
    format_value,
    join_names,
    name_group,
    to_line,
)
from recbias.statistics.intervals import detect_difference
from recbias.statistics.spread import TREND


class _Answer(NamedTuple):
    """A sentence, how it was found, and sentences that belong beside it."""

    sentence: str
    detail: str = ""
    more: tuple[str, ...] = ()


_LONGEST = 25  # words of a sentence


def _fit(sentences: Iterable[str]) -> str:
    """Return the first of several sentences that is short enough, else the last."""
    texts = [*sentences]
    return next((text for text in texts if len(text.split()) <= _LONGEST), texts[-1])


def _start(text: str) -> str:
    """Return a sentence that starts with a capital; a symbol stays as it is: ``nDCG``."""
    first = text.partition(" ")[0]
    return text[0].upper() + text[1:] if first.isalpha() and first.islower() else text


def _continue(text: str, name: str) -> str:
    """Return a sentence on a metric of a name as the end of one, without its capital."""
    if text.startswith(_start(name)):
        return name + text[len(name) :]
    return re.sub("^(No|Baselines|Whether) ", lambda match: match[0].lower(), text)


def _combine(*parts: str) -> str:
    """Return sentences as one text, without the blank ones."""
    return " ".join(filter(None, parts))


_SUPERLATIVES: Mapping[str, str] = {
    "higher": "the highest {}",
    "lower": "the lowest {}",
    "zero": "the {} nearest to 0",
    "none": "the {}",
}
_COMPARATIVES = {
    "higher": ("a higher {}", "a lower {}"),
    "lower": ("a lower {}", "a higher {}"),
    "zero": ("its {} nearer to 0", "its {} farther from 0"),
}
"""What better and worse values are, by the direction of the measure."""

# ---- what a comparison says ----


def _count_places(row: Row) -> int:
    names = ("difference", "mean_a", "mean_b", "ci_low", "ci_high")
    return count_decimals(row[name] for name in names)


def _state_size(row: Row, name: str = "difference", *, signed: bool = False) -> str:
    """Return a difference with its interval, or its size."""
    value, low, high = orient(row, name)
    if signed:
        value, low, high = row["difference"], row["ci_low"], row["ci_high"]
    return format_estimate(value, low, high, _count_places(row) if name == "difference" else None)


def _describe_test(question: Question, row: Row | None = None) -> str:
    """Return the test, the correction, the family, and the p-value and n of a comparison."""
    methods = views.describe_methods(question.comparisons)
    methods = methods[0].upper() + methods[1:]
    if row is None:
        return f"{methods}."
    n = "" if math.isnan(row["n"]) else f", {_count(row['n'], question.units)}"
    if question.compares_models and row["alpha"] != 0.05:
        n += f", {100 * (1 - row['alpha']):g}% interval"
    equal = ", all differences are equal" * lacks_spread(row)
    is_adjusted = row["correction"] not in {"", "none"} and row["family_size"] != 1
    p = format_p_value(row["p_adjusted"], row["alpha"])
    what = ""
    if question.between == "groups" and math.isnan(row["mean_a"]):
        what = "; the test permutes the groups, and the interval is of the value itself"
    return f"{methods}: {'adjusted ' * is_adjusted}p {p}{n}{equal}{what}."


def _count(n: float, unit: str) -> str:
    return format_count(n, unit) if unit else f"n {n:,.0f}"


def _name_side(question: Question, row: Row, side: str) -> str:
    """Return the name of a side of a comparison; of a crossing, ``gender=F and age < 25``."""
    name = str(row[side])
    if question.between == "groups" or side == "group":
        name = name_group(name, question.metric.by)
    return to_line(name)


def _add_mean(name: str, row: Row, side: str) -> str:
    return f"{name} ({format_value(row[f'mean_{side}'], _count_places(row))})"


def _describe_power(question: Question, rows: Sequence[Row]) -> str:
    """Return what comparisons of a question that are not significant could have found.

    Of several pairs of groups, which differ in size, that with the smallest p-value could.
    """
    if not rows:
        return ""
    if all(row["difference"] == 0 for row in rows):
        return "All compared values are equal."
    if all(map(lacks_spread, rows)):
        size, n = _state_size(rows[0]), _count(rows[0]["n"], question.units or "unit")
        return f"The difference is {size} throughout, but {n} are too few for significance."
    pair = ""
    if question.between == "groups" and len({frozenset((row["a"], row["b"])) for row in rows}) > 1:
        row = min(rows, key=lambda row: float(row["p_adjusted"]))
        rows, sides = [row], (_name_side(question, row, side) for side in "ab")
        pair = f" between {' and '.join(sides)} with {to_line(row['model'])}"
    detectable = _find_detectable(rows)
    if math.isnan(detectable):
        return ""
    low, high = read_bounds(question.metric.values)
    if detectable > high - low:
        return f"Not even a difference of {high - low:g}{pair} would have been detected reliably."
    places = count_decimals([detectable])
    text = format_value(detectable, min(places, 4) if detectable >= 0.01 else places)
    return f"A difference of {text} or more{pair} would have been detected in 80 of 100 such runs."


def _find_detectable(rows: Sequence[Row]) -> float:
    """Return the difference that each of these comparisons would have found; NaN if unknown."""
    differences = [detect_difference(row) for row in rows]
    return max((value for value in differences if not math.isnan(value)), default=math.nan)


_LABELLED = {"REC-ST": "items", "HIT_BAD": "lists"}
"""What the values of metrics of labels are shares of."""


def _describe_label_errors(question: Question) -> str:
    """Return the errors of unchecked labels at which a difference between two sides turns.

    A difference d of two shares, of which M is the larger, is 0 if d / (1 - M + d) of what has no
    label is labelled wrongly on that side alone, or d / M of what has one is missed on the other.
    It is not significant from the end of its interval that is nearer to 0. Errors that are as
    frequent on both sides make a difference smaller, and never turn it.
    """
    settings, name = question.metric.parameters, _LABELLED.get(question.metric.name)
    is_unchecked = "." in str(settings.get("label")) and settings.get("corrected", True) is None
    if name is None or not is_unchecked or question.metric.gap or not question.significant:
        return ""
    row = (question.significant if question.compares_models else question.leads)[0]
    sides = "ab" if row["difference"] > 0 else "ba"
    high, low = (_name_side(question, row, side) for side in sides)
    most, size = float(row[f"mean_{sides[0]}"]), abs(float(row["difference"]))
    least = min(abs(float(row["ci_low"])), abs(float(row["ci_high"])))
    if not 0 < least <= size < most < 1:
        return ""
    false, zero = (f"{each / (1.0 - most + size):.1%}" for each in (least, size))
    missed, none = (f"{each / most:.1%}" for each in (least, size))
    return (
        "People did not check the labels. The difference is not significant if "
        f"{false} more of the {name} without one are labelled wrongly for {high} than for {low}, "
        f"or {missed} more of those with one are missed for {low}; it is 0 at {zero} or {none}."
    )


# ---- the answer to a question ----


def _write_answer(question: Question) -> _Answer:
    """Return the largest significant difference, or what could have been detected."""
    if question.served is not None:
        return _write_served(question, question.served)
    if not question.rows:
        sentence = (
            f"Whether {question.heading}{question.where} differs between {question.between} is "
            "undefined: no test could be computed."
        )
        return _Answer(sentence, _describe_test(question))
    if not question.compares_models:
        write = _write_contrast if question.significant else _write_no_difference
        return write(question)
    has_values = not all(math.isnan(question.get_value(name)) for name in question.models)
    if question.metric.direction != "none" and has_values and not question.comparisons[0].part:
        return _write_best(question)
    return _write_models(question) if question.significant else _write_no_difference(question)


def _write_served(question: Question, served: views.Comparisons) -> _Answer:
    """Return the answer over the queries that all models have a list for, and that over all."""
    rows = tuple({**row, "group": "", "part": ""} for row in served.rows)
    estimates = {
        (model, "", target): row
        for (model, group, target), row in question.estimates.items()
        if group == SERVED
    }
    comparisons = (replace(served, part="", rows=rows),)
    whole = _write_answer(replace(question, served=None))
    part = _write_answer(
        replace(question, served=None, comparisons=comparisons, estimates=estimates)
    )
    everybody = [row for (_, group, _), row in question.estimates.items() if not group]
    of_served, names = [*estimates.values()], {"name": question.name, "unit": question.unit}
    return _join_served(whole, part, everybody, of_served, **names)


def _add_unserved(question: Question, answer: _Answer) -> _Answer:
    """Return an answer on groups that says for how many queries some model has no list."""
    if not question.unserved:
        return answer
    fact = f"{question.unserved} lack a list of some model"
    detail = re.sub(r"\.( |$)", r"; a missing list counts as 0.\1", answer.detail, count=1)
    if sentence := _fit([f"{answer.sentence.removesuffix('.')}; {fact}.", ""]):
        return answer._replace(sentence=sentence, detail=detail)
    return answer._replace(detail=detail, more=(f"{_start(fact)}.", *answer.more))


def _join_served(
    whole: _Answer,
    part: _Answer,
    rows: Sequence[Row],
    served: Sequence[Row],
    *,
    name: str,
    unit: str,
) -> _Answer:
    """Return the answer for the queries that all models have a list for, beside that for all.

    Over several seeds or folds n is that of one of them, so the number is left out.
    """
    noun = everybody = units = views.name_several(unit)
    if not any(ALL in {row["seed"], row["fold"]} for row in served):
        n, total = (max(float(row["n"]) for row in each) for each in (served, rows))
        everybody = format_count(total, unit or "query")
        units = f"{n:,.0f} of {everybody}"
    if len({row["n"] for row in rows}) > 1:
        everybody = f"{noun} with a value"
    texts = (part.sentence, *whole.more, whole.sentence)
    own, *others = (_continue(text, name) for text in texts)
    sentence = f"For the {units} with lists of all models, {own}"
    return part._replace(
        sentence=sentence, more=tuple(f"Over all {everybody}, {text}" for text in others)
    )


def _write_no_difference(question: Question) -> _Answer:
    models, ending, between = question.models, "", ""
    if question.compares_models:
        rows = [row for row in question.rows if {row["a"], row["b"]} <= {*models}]
        between = f" between the {len(models):,} models"
    else:
        rows = question.rows
        ending = f" with {join_names(models, 'or')}"
        if len(models) > 3:
            ending = f" for any of the {len(models):,} models"
    rows = rows or question.rows
    sides = list(dict.fromkeys(_name_side(question, row, side) for row in rows for side in "ab"))
    what = [f"difference in {question.heading}{question.where}{between}"]
    if rows[0]["test"] == TREND:
        order = f"with the order of the groups by {question.metric.by}"
        what = [f"trend of {question.name}{question.where} {order}"]
    elif len(sides) == 2:
        pair = join_names(sides)
        what.insert(0, f"difference in {question.name}{question.where} between {pair}")
    smallest = min(rows, key=lambda row: float(row["p_adjusted"]))
    size = f"Difference {_state_size(smallest, signed=True)}." if len(rows) == 1 else ""
    test = _describe_test(question, smallest)
    if constant := [row for row in rows if lacks_spread(row)]:
        row = max(constant, key=lambda row: abs(float(row["difference"])))
        ordered = "ba" if row["difference"] < 0 else "ab"
        above, below = (_name_side(question, row, side) for side in ordered)
        by_how_much = f"{_state_size(row)} higher for {above} than for {below}{ending}"
        each = f"each of {_count(row['n'], question.units or 'unit')}"
        sentence = f"{question.heading} is {by_how_much} in {each}, too few for significance."
        return _Answer(_start(sentence), test)
    return _Answer(
        _fit(f"No significant {text} was found{ending}." for text in what),
        _combine(test, _describe_power(question, rows), size),
    )


def _write_contrast(question: Question) -> _Answer:
    """Return who is treated differently within a model, and by how much."""
    leads, decided = question.leads, {row["model"] for row in question.significant}
    undecided = [row for row in question.rows if row["model"] not in decided]
    names = join_names(list(dict.fromkeys(row["model"] for row in undecided)), "or")
    detail = _combine(
        _describe_test(question, leads[0]),
        ZERO * includes_zero(leads[0]),
        _count_significant(question) if len(question.rows) > len(question.models) else "",
        f"No significant difference was found with {names}." if names else "",
        _describe_power(question, undecided),
    )
    kind, words = _describe_contrast(question, leads)
    sentence = _start(_fit(text.format_map(words) for text in _CONTRASTS[kind]))
    more = [_describe_shared(question, leads[0])] if leads[0]["b"] == CONTROL else []
    more += [
        f"The same holds for {_count_identities(question, each)} with {to_line(each['model'])}."
        for each in leads[1:] * (kind == "identities")
        if _agrees(each, leads[0])
    ]
    return _Answer(sentence, detail, tuple(more))


def _find_identities(question: Question, row: Row) -> list[Row]:
    """Return the identities of which a model has a significant effect of the same sign."""
    own = [each for each in _select_same(question.significant, row, "model") if each["group"]]
    return [each for each in own if _agrees(each, row)]


def _count_identities(question: Question, row: Row) -> str:
    n = len(_find_identities(question, row))
    total = sum(each["group"] != "" for each in _select_same(question.rows, row, "model"))
    return f"{'each' if n == total else f'{n:,}'} of {total:,} identities"


def _describe_shared(question: Question, row: Row) -> str:
    """Return the overlaps behind an effect of an identity, whose means are 1 - overlap."""
    stated, repeated = (format_value(1.0 - row[f"mean_{side}"], 2) for side in "ab")
    side, model = _name_side(question, row, "a"), to_line(row["model"])
    text = f"Lists of {model} for {side} have an overlap of {stated}"
    if row["mean_a"] == 1:
        text += f" (0 in each of {format_count(row['n'], 'prompt')})"
    return f"{text} with the neutral list; the neutral prompt sampled again has {repeated}."


_COMPARED = {"association": "share of positions{} (association)"}
"""The quantity that a test within a model compares where it is not the metric, by the metric."""

_CONTRASTS = {
    "trend": (
        "{name} {trend}, from {full_b} to {full_a}, with {model}{too}.",
        "{name} {trend}, from {b} to {a}, with {model}.",
    ),
    "same": (
        "{name} is {order} for {a} than for {b} with {share}{most}: by {size}.",
        "{name} is {order} for {a} than for {b} with {model}: by {size}.",
    ),
    "sides": (
        "{name} is {order} for {full_a} than for {full_b} with {model}: by {size}{too}.",
        "{name} is {order} for {full_a} than for {full_b} with {model}: by {size}.",
        "{name} is {order} for {a} than for {b} with {model}: by {size}.",
    ),
    "stated": (
        "Stating {stated} {changes} {alike} {than}{most}: by {size}.",
        "Stating {stated} {changes} {alike_share} {than}{most}: by {size}.",
        "Stating {a} {changes} {model} {than}: by {size}.",
    ),
    "identities": ("Stating {identities} {changes} {model} {than}, {widest}{a}: by {size}.",),
    "spread": (
        "{name} is {size} with {model}: from {full_b} to {full_a}.",
        "{name} is {size} with {model}: from {b} to {a}.",
    ),
    "value": ("{name} of {a} and {b} is {signed} with {model}, more than by chance{too}.",),
    "other": (
        "{name} differs{farthest} between {full_a} and {full_b} with {model}: by {size}{too}.",
        "{name} differs{farthest} between {full_a} and {full_b} with {model}: by {size}.",
        "{name} differs{farthest} between {a} and {b} with {model}: by {size}.",
    ),
}
"""The sentences on the largest difference within a model, from the longest form on."""


def _describe_contrast(question: Question, leads: Sequence[Row]) -> tuple[str, dict[str, str]]:
    """Return the kind of the largest difference within a model, and the words of its sentence."""
    row, is_positive, model = leads[0], leads[0]["difference"] > 0, to_line(leads[0]["model"])
    a, b = (_name_side(question, row, side) for side in "ab")
    target = f" for {to_line(row['target'])}" if row["target"] else ""
    of_sides = _select_same(question.significant, row, "a", "b", "target")
    same = {each["model"] for each in of_sides if _agrees(each, row)}
    also = [each["model"] for each in leads[1:] if each["model"] in same]
    unlike = [each for each in leads[1:] if each["model"] not in same]
    is_opposite = all(each in of_sides for each in unlike)
    others = "the opposite holds" if is_opposite else "other differences are significant"
    alike = [each for each in leads if _agrees(each, row)]
    is_same = len({(each["a"], each["b"], each["target"]) for each in leads}) == 1
    is_largest = all(abs(each["difference"]) <= abs(row["difference"]) for each in alike)
    is_same = is_same and is_largest and leads[1:] == alike[1:] != []
    sizes = [each["difference"] for each in alike[1:]]
    has_most = is_largest and not all(math.isclose(size, row["difference"]) for size in sizes)
    quantity = _COMPARED.get(question.metric.name, f"{question.name}{{}}").format(target)
    own = _find_identities(question, row)
    words = {
        "name": f"{quantity}{question.where}",
        "model": model,
        "too": f"; also significant with {join_names(also)}" * bool(also)
        + f"; {others} with {join_names([each['model'] for each in unlike])}" * bool(unlike),
        "share": _count_share(leads, len(question.models)),
        "alike": join_names([each["model"] for each in alike]),
        "alike_share": _count_share(alike, len(question.models)),
        "a": a,
        "b": b,
        "full_a": _add_mean(a, row, "a"),
        "full_b": _add_mean(b, row, "b"),
        "size": _state_size(question.add_interval(row)),
        "signed": _state_size(row, signed=True),
        "order": "higher" if is_positive else "lower",
        "trend": f"{'rises' if row['effect_size'] > 0 else 'falls'} with the order of the groups",
        "changes": "changes the lists of",
        "than": f"{'more' if is_positive else 'less'} than repeating the neutral prompt does",
        "stated": a if is_same or not alike[1:] else "an identity",
        "identities": _count_identities(question, row),
        "widest": "most "
        * (row == max(own, key=lambda each: abs(each["difference"]), default="")),
        "most": f", most with {model}{'' if is_same else f' for {a}'}" * has_most,
        "farthest": ", most" * (row["test"] == "welch_anova"),
    }
    if row["test"] == TREND:
        return "trend", words
    if _measures_sides(question, row) or question.metric.name in _COMPARED:
        return "same" if is_same else "sides", words
    if row["b"] == CONTROL:
        return "identities" if row in own and own[1:] else "stated", words
    if math.isnan(row["mean_a"]) or math.isnan(row["mean_b"]):
        return "value", words
    value = question.get_value(row["model"])
    is_spread = not question.metric.by and math.isclose(value, row["difference"])
    return "spread" if is_spread else "other", words


def _count_share(leads: Sequence[Row], n: int) -> str:
    """Return how many of n models have a significant difference: ``both models``."""
    every = f"{'both' if n == 2 else f'all {n:,}'} models"
    return every if len(leads) == n else f"{len(leads):,} of {n:,} models"


def _count_significant(question: Question) -> str:
    """Return how many comparisons are significant, where a model has several."""
    n, total = len(question.significant), format_count(len(question.rows), "test")
    both = ", in both directions" * any(map(_find_opposite, [question] * n, question.significant))
    return f"{n:,} of {total} {'is' if n == 1 else 'are'} significant{both}."


def _find_opposite(question: Question, row: Row) -> list[Row]:
    """Return the significant differences of the same two sides in the other direction."""
    of_sides = _select_same(question.significant, row, "a", "b")
    return [each for each in of_sides if each["difference"] * row["difference"] < 0]


def _select_same(rows: Iterable[Row], row: Row, *names: str) -> list[Row]:
    return [each for each in rows if all(each[name] == row[name] for name in names)]


def _agrees(row: Row, other: Row) -> bool:
    """Return whether two differences have the same sign."""
    return bool((row["difference"] > 0) == (other["difference"] > 0))


def _measures_sides(question: Question, row: Row) -> bool:
    """Return whether the test compares the values of the metric, and not others."""
    estimates = [question.estimates.get((row["model"], row[s], row["target"])) for s in "ab"]
    means = row["mean_a"], row["mean_b"]
    return row["difference"] != 0 and all(
        estimate is not None and math.isclose(estimate["value"], mean, rel_tol=1e-9, abs_tol=1e-12)
        for estimate, mean in zip(estimates, means, strict=True)
    )


def _write_models(question: Question) -> _Answer:
    """Return the largest difference between models, where none is better by direction."""
    row = min(
        question.significant, key=lambda row: bool({row["a"], row["b"]} & question.baselines)
    )
    part, *opposite = (
        f" for {join_names(names)}" if names else ""
        for each in (row, *_find_opposite(question, row))
        for names in [[_name_side(question, each, at) for at in ("group", "target") if each[at]]]
    )
    others = question.baselines | question.references
    sides = "ba" if row["a"] in others and row["b"] not in others else "ab"
    orders = ["higher", "lower"]
    order, other = orders if (row["difference"] > 0) == (sides == "ab") else orders[::-1]
    a, b = (_add_mean(_name_model(question, row[side]), row, side) for side in sides)
    name = f"{question.name}{part}{question.where}"
    sentence = f"{name} is {order} with {a} than with {b}: by {_state_size(row)}"
    texts = [f"{sentence}."]
    if opposite:
        parts = f" in {len(opposite):,} parts" if opposite[1:] else opposite[0]
        texts = [f"{sentence}; it is {other}{parts}.", f"{sentence}; others are opposite."]
    small = _combine(_describe_test(question, row), _count_significant(question))
    return _Answer(_start(_fit(texts)), small)


def _write_best(question: Question) -> _Answer:
    """Return the best model, and which others it is significantly better than."""
    models, direction = question.models, question.metric.direction
    wins = views.find_wins(question.comparisons[0])
    best, others = _split_best(models, question)
    baseline = _find_baseline(question, wins)
    if baseline and len(models) == 1:
        row = _find_row(question, models[0], baseline)
        sentence = _compare_pair(question, models[0], baseline, wins)
        return _Answer(sentence, _describe_test(question, row))
    beaten = set.intersection(*(wins.get(name, set()) for name in best))
    is_accuracy = question.metric.name in views.ACCURACY and not question.metric.gap
    is_above = (question.baselines & {*wins}) <= beaten
    more: tuple[str, ...] = ()
    is_best = baseline in _split_best([*best, baseline], question)[0]
    if baseline and (is_accuracy or is_best) and not is_above:
        more = (_compare_pair(question, best[0], baseline, wins),)
    if not any(wins.get(name, set()) & {*models} for name in models):
        return _write_no_winner(question)._replace(more=more)
    missed = [name for name in others if name not in beaten]
    rivals = {*(missed or others)}
    pairs = [(row, {row["a"], row["b"]}) for row in question.rows]
    rows = [row for row, pair in pairs if pair & {*best} and pair & rivals]
    lead = _name_best(question, best, baseline)
    if missed:
        verb = "is" if len(best) == 1 else "are"
        some = "any" if len(missed) == len(others) else f"{len(missed):,}"
        named = f"{some} of the {len(others):,} others"
        named = join_names(missed, "or") if len(missed) <= 3 else named
        sentence = f"{lead}, but {verb} not shown to be better than {named}."
        small = _describe_missed(question, rows)
    else:
        closest = min(
            rows,
            key=lambda row: abs(
                to_loss(row["mean_a"], direction) - to_loss(row["mean_b"], direction)
            ),
        )
        small = _describe_test(question, closest)
        if len(models) == 2:
            a, b = sorted(models, key=lambda name: (name in question.references, name not in best))
            sentence = _compare_pair(question, a, b, wins)
        else:
            than = [*others] if len(others) <= 3 else [f"each of the other {len(others):,} models"]
            if is_above and is_accuracy:
                weaker = [_name_model(question, name) for name in question.baselines & {*wins}]
                than += weaker if len(weaker) < 2 else ["the baselines"]
            both = {1: "", 2: " and both are"}.get(len(best), " and all are")
            sentence = f"{lead},{both} significantly better than {join_names(than)}."
            rival = closest["b"] if closest["a"] in best else closest["a"]
            smallest = f"Smallest difference {_state_size(closest)}, from {to_line(rival)}."
            small = _combine(small, smallest * (not _are_opposite(question, closest)))
    return _Answer(sentence, _combine(small, f"{DIRECTION_LABELS[direction].capitalize()}."), more)


def _name_best(question: Question, best: Sequence[str], baseline: str) -> str:
    """Return the models with the best value, and the value; a baseline may have a better one."""
    of = f"{question.name}{question.where}"
    places = count_decimals(map(question.get_value, question.models))
    what = f"{_SUPERLATIVES[question.metric.direction].format(of)}, "
    value = format_value(question.get_value(best[0]), places)
    scale = f" ({question.metric.scale})" * bool(question.metric.scale)
    is_behind = baseline and {baseline} == {*_split_best([*best, baseline], question)[0]}
    verb = "has" if len(best) == 1 else "share"
    return (
        f"{'Baselines aside, ' if is_behind else ''}{join_names(best)} {verb} {what}{value}{scale}"
    )


def _write_no_winner(question: Question) -> _Answer:
    """Return that no model is shown to be the best: none differs, or the side is not known."""
    models, direction = question.models, question.metric.direction
    rows = [row for row in question.rows if {row["a"], row["b"]} <= {*models}]
    if not any(map(views.is_significant, rows)):
        return _write_no_difference(question)
    comparative = _COMPARATIVES[direction][0].format(f"{question.name}{question.where}")
    places = count_decimals(map(question.get_value, models))
    values = [f"{name} {format_value(question.get_value(name), places)}" for name in models]
    sentence = f"No model is shown to have {comparative} than another"
    if any(views.is_significant(row) and math.isnan(row["reach"]) for row in rows):
        sentence = _start(f"{question.name}{question.where} differs between models")
    texts = [f"{sentence}: {join_names(values)}.", f"{sentence}."]
    return _Answer(_fit(texts), _describe_missed(question, rows))


def _are_opposite(question: Question, row: Row) -> bool:
    """Return whether the values lie on opposite sides of 0, which is best.

    The difference is then not how much nearer one is.
    """
    return question.metric.direction == "zero" and row["mean_a"] * row["mean_b"] < 0


def _describe_missed(question: Question, rows: Sequence[Row]) -> str:
    """Return why no side of comparisons is shown to be better: the tests, and what they ask.

    Where 0 is best the test is of a - b; |a| and |b| differ only if a + b is not 0 either.
    """
    if not rows:
        return _describe_test(question)
    row = min(rows, key=lambda row: float(row["p_adjusted"]))
    unknown = [each for each in rows if views.is_significant(each)]
    others = [each for each in rows if each not in unknown and not _are_opposite(question, each)]
    power = _describe_power(question, others)
    if row not in unknown:
        return _combine(_describe_test(question, row), power)
    test = _describe_test(question, row).removesuffix(".")
    if question.metric.direction != "zero":
        return _combine(f"{test}; the test and the means disagree on the better side.", power)
    distances = "whether distances from 0 differ is not known"
    if not math.isnan(row["reach"]):
        values, places = (row["mean_a"] + row["mean_b"], row["reach"]), _count_places(row)
        total = " ± ".join(format_value(value, places) for value in values)
        distances = f"distances from 0 differ only if the sum, {total}, is not 0 either"
    size = _state_size(row, signed=True)
    return _combine(f"{test}, of the signed difference {size}; {distances}.", power)


def _split_best(models: Sequence[str], question: Question) -> tuple[list[str], list[str]]:
    """Return the models with the best value, and the others."""
    flags = views.flag_best(map(question.get_value, models), question.metric.direction)
    best = [name for name, flag in zip(models, flags, strict=True) if flag]
    return best, [name for name in models if name not in best]


def _find_row(question: Question, a: str, b: str) -> Row | None:
    """Return the tested comparison of two models."""
    return next((row for row in question.rows if {row["a"], row["b"]} == {a, b}), None)


def _find_baseline(question: Question, compared: Iterable[str]) -> str:
    """Return the best of the baselines that models are compared with; blank if there is none."""
    best, _ = _split_best([name for name in compared if name in question.baselines], question)
    return "" if not best or best[0] in question.models else best[0]


def _name_model(question: Question, model: str) -> str:
    is_baseline = model in question.baselines and model not in question.models
    return f"the baseline {to_line(model)}" if is_baseline else to_line(model)


def _compare_pair(question: Question, model: str, other: str, wins: Mapping[str, set[str]]) -> str:
    """Return how a model compares with another one by the tests."""
    values = [question.get_value(name) for name in (model, other)]
    against = " against ".join(format_value(value, count_decimals(values)) for value in values)
    name, than = f"{question.name}{question.where}", _name_model(question, other)
    is_better, is_worse = other in wins.get(model, ()), model in wins.get(other, ())
    if not (is_better or is_worse):
        return f"{to_line(model)} is not shown to be better than {than} in {name}: {against}."
    comparative = _COMPARATIVES[question.metric.direction][is_worse].format(name)
    lead = f"{to_line(model)} has {comparative} than {than}: {against}"
    row = _find_row(question, model, other)
    size = f", a difference of {_state_size(row)}" if row else ""
    if question.metric.direction == "zero" and values[0] * values[1] < 0:
        size = ", on opposite sides of 0"  # the difference is not how much nearer one is
    return _fit([f"{lead}{size}.", f"{lead}."])


# ---- re-ranking ----

_EFFECTS = {
    "lower": ("lowers {}", "raises {}"),
    "higher": ("raises {}", "lowers {}"),
    "zero": ("brings {} nearer to 0", "takes {} farther from 0"),
    "none": ("improves {}", "worsens {}"),
}
"""What less and more bias is, by the direction of the measure."""


def _describe_reranking(run: RunTables) -> Iterator[Conclusion]:
    """Yield what the best setting of each re-ranker removes of a measure of bias, and its cost.

    The measures of which a version is shown to remove something are first.
    """
    groups = views.group_rows(views.select_tradeoffs(run), ("dataset", "bias", "target"))
    ranked = sorted(
        groups.items(), key=lambda item: not any(row["bias_removed_low"] > 0 for row in item[1])
    )
    several = len(views.list_single_datasets(run)) > 1
    for (dataset, bias, target), rows in ranked:
        best: dict[tuple[str, str], Row] = {}
        for row in sorted(rows, key=lambda row: -rank_effect(row["bias_removed"])):
            if not math.isnan(row["bias_removed"]):
                best.setdefault((row["baseline"], views.name_reranker(row)), row)
        place = [f"of {target}" if target else "", f"on {dataset}" if several else ""]
        texts = [
            _describe_version(run, row, to_line(_combine(_name(run, bias), *place)))
            for row in best.values()
        ]
        if texts:
            small = "Each re-ranker at its best setting, without correction for the choice."
            answer = _Answer(texts[0], _combine(*texts[1:], small))
            yield Conclusion(kind="reranking", metric=bias, dataset=dataset, **answer._asdict())


def _name(run: RunTables, title: str) -> str:
    return views.name_metric(run, views.get_definition(run, title))


def _describe_version(run: RunTables, row: Row, name: str) -> str:
    """Return a re-ranked version with what it removes and what it costs."""
    direction = views.get_definition(run, row["bias"]).direction
    reranker, setting, strength = views.name_reranker(row), row["setting"], row["strength"]
    if not math.isnan(strength) and f"{setting}=" not in reranker:
        reranker = f"{reranker} ({setting} {strength:g})"
    effect = _EFFECTS[direction][row["bias_removed"] < 0].format(name)
    effect = f"{effect} by {_state_size(row, 'bias_removed')}"
    if row["bias_removed"] == 0:
        effect = f"does not change {name}"
    elif row["bias_removed_low"] <= 0 <= row["bias_removed_high"]:
        effect = f"is not shown to change {name}"
    gains = "gains" if row["accuracy_lost"] < 0 else "costs"
    cost = f"{gains} {_state_size(row, 'accuracy_lost')} of {_name(run, row['accuracy'])}"
    return f"{to_line(reranker)} of {to_line(row['baseline'])} {effect} and {cost}."


# ---- values without a test ----


def _describe_values(run: RunTables, questions: Sequence[Question]) -> Iterator[Conclusion]:
    """Yield an answer for the metrics that no test compares as a whole."""
    compared = {(item.metric.title, item.comparisons[0].place[0]) for item in questions}
    has_effects = any(item.metric.name == "identity_effect" for item in questions)
    headline = sorted(
        views.list_headline(run).items(),
        key=lambda item: all(math.isnan(row["value"]) for row in item[1]),
    )
    for (title, dataset), every in headline:
        metric = views.collect_definitions(run)[title]
        of_groups = title.replace(f", gap={metric.gap}", "")
        if not compared.isdisjoint({(title, dataset), (of_groups, dataset)}):
            continue
        rows = [row for row in every if row["model"] != DATASET and not row["target"]]
        if metric.gap in {"ratio", "std"} or not rows:
            continue
        overall, served = ([row for row in rows if row["group"] == name] for name in ("", SERVED))
        where = views.describe_place(run, (dataset, ALL, ALL))
        answer = _describe_overall(run, metric, overall or rows, where)
        if overall and served:
            part = _describe_overall(run, metric, served, where)
            names = {"name": _name(run, title), "unit": name_unit(run, metric)}
            answer = _join_served(answer, part, overall, served, **names)
        control = [row for row in every if row["target"] == "control" and not row["group"]]
        if control and overall and not has_effects:
            values = [
                format_value(row["value"], 4)
                + f" with {to_line(row['model'])}" * bool(control[1:])
                for row in control
            ]
            again = f"that of the neutral prompt sampled again is {join_names(values)}."
            answer = answer._replace(sentence=f"{answer.sentence.removesuffix('.')}; {again}")
        yield Conclusion(kind="value", metric=title, dataset=dataset, **answer._asdict())


def _describe_overall(
    run: RunTables, metric: Definition, rows: Sequence[Row], where: str
) -> _Answer:
    """Return the best value, of groups the worst, or both ends where none is better."""
    baselines, is_of_groups = views.list_baselines(run), rows[0]["group"] not in {"", SERVED}
    name = f"{views.name_metric(run, metric, 'a group' if is_of_groups else '')}{where}"
    defined = [row for row in rows if not math.isnan(row["value"])]
    absent = join_names(list(dict.fromkeys(r["model"] for r in rows if math.isnan(r["value"]))))
    if not defined:
        return _Answer(f"{_start(name)} is undefined for {absent}.")
    is_undefined = "Some groups have no value with" if is_of_groups else "Undefined for"
    undefined = f"{is_undefined} {absent}." if absent else ""
    named = [row for row in defined if row["model"] not in baselines] or defined
    places = count_decimals(row["value"] for row in named)
    scale = f" ({metric.scale})" if metric.scale else ""
    if is_of_groups:
        sentence = f"{_start(name)} is {_name_ends(metric, named, places, scale)}."
        return _Answer(sentence, _combine("No test compares the groups.", undefined))
    defined.sort(key=lambda row: to_loss(row["value"], metric.direction))
    named = [row for row in defined if row in named]
    values = [format_value(row["value"], places) for row in named]
    models = [to_line(row["model"]) for row in named]
    better = ""
    if defined[0] not in named and metric.direction != "none":
        value = format_value(defined[0]["value"], places)
        better = f"; the baseline {to_line(defined[0]['model'])} has {value}"
    if len(named) == 1:
        row = named[0]
        value = format_estimate(row["value"], row["ci_low"], row["ci_high"], places)
        unit = name_unit(run, metric)
        n = f"{format_count(row['n'], unit)}." if unit and not math.isnan(row["n"]) else ""
        sentence = f"{_start(name)} is {value} with {models[0]}{scale}{better}."
        return _Answer(sentence, _combine(n, undefined))
    detail = _combine("No test compares the models.", undefined)
    flags = views.flag_best([row["value"] for row in named], metric.direction)
    if metric.direction == "none" or all(flags):
        texts = [f"{model} {value}" for model, value in zip(models, values, strict=True)]
        lists = (f"{_start(name)}: {join_names(texts[:n])}." for n in (6, 4, 3, 2))
        return _Answer(_fit(lists), detail)
    best = join_names(models[: sum(flags)])
    what, verb = _SUPERLATIVES[metric.direction].format(name), "share" if flags[1] else "has"
    against = f"of {len(named):,} models"
    if len(named) == 2:
        against = f"against {models[1]} {values[1]}"
    return _Answer(f"{best} {verb} {what}, {values[0]}{scale}, {against}{better}.", detail)


def _name_ends(metric: Definition, rows: Sequence[Row], places: int, scale: str) -> str:
    """Return the worst-off group and its value, or both ends where no group is worse."""
    ranked = sorted(rows, key=lambda row: float(row["value"]))
    ends = {"highest": ranked[-1], "lowest": ranked[0]}
    worst = find_worst_groups(rows, metric)
    if n_tied := len({row["group"] for row in worst[1:]}):
        return f"worst for {n_tied + 1:,} groups: {format_value(worst[0]['value'], places)}{scale}"
    if worst:
        ends = {"worst": worst[0]}
    elif len(rows) == 1:
        ends = {"known only": rows[0]}
    return " and ".join(
        f"{end} for {to_line(name_group(row['group'], metric.by))} with {to_line(row['model'])}: "
        f"{format_value(row['value'], places)}{scale}"
        for end, row in ends.items()
    )


# ---- conclusions ----

_Kind = Literal["reranking", "groups", "models", "value"]
_METHOD = ("test", "correction", "family", "family_size", "alpha")


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """The answer of a run to one question, as text and as numbers.

    The fields from ``a`` on are those of the comparison with the largest significant effect, if
    possible of a model that no check takes as the baseline; they are blank or NaN if no comparison
    is significant, and for values without a test.

    Args:
        sentence: The answer.
        detail: How it was found: test, correction, p-value and n; it may be blank.
        more: Sentences that belong to it: how the best model compares with a baseline that it is
            not better than, and the answer for the queries that all models have a list for.
        kind: ``reranking``: what re-ranking removes and costs; ``groups``: what is compared within
            a model; ``models``; or ``value`` without a test.
        effect: The size of the effect in standard deviations, by which conclusions are ordered.
        n_tests: The number of comparisons, of which ``n_significant`` are significant.
        detectable: The difference that each test which found none would have detected in 80 of
            100 such runs; NaN if there is no such test.
        worst: The worst-off groups of queries in the metric's direction.
    """

    kind: _Kind
    metric: str
    dataset: str
    sentence: str
    detail: str = ""
    more: tuple[str, ...] = ()
    between: str = ""
    effect: float = math.nan
    n_tests: int = 0
    n_significant: int = 0
    detectable: float = math.nan
    model: str = ""
    a: str = ""
    b: str = ""
    part: str = ""
    mean_a: float = math.nan
    mean_b: float = math.nan
    difference: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    p_adjusted: float = math.nan
    test: str = ""
    correction: str = ""
    family: str = ""
    family_size: float = math.nan
    alpha: float = math.nan
    worst: tuple[str, ...] = ()


@lru_cache(maxsize=2)
def collect_conclusions(run: RunTables) -> tuple[Conclusion, ...]:
    """Return the conclusions: re-ranking, then significant ones, groups first."""
    questions = collect_questions(run)
    answers = sorted(
        map(_conclude, questions),
        key=lambda item: (
            not item.n_significant,
            item.kind != "groups",
            -rank_effect(item.effect),
        ),
    )
    turns = (
        Conclusion(kind="value", metric=curve.metric.title, dataset=dataset, sentence=sentence)
        for dataset in views.list_single_datasets(run)
        for curve in collect_curves(run, dataset)
        if (sentence := curve.describe())
    )
    return (*_describe_reranking(run), *answers, *_describe_values(run, questions), *turns)


def _conclude(question: Question) -> Conclusion:
    rows, significant = question.rows, question.significant
    decided = set() if question.compares_models else {row["model"] for row in significant}
    others = (row for row in rows if row["model"] not in decided)
    undecided = [row for row in others if not views.is_significant(row)]
    test, facts = question.comparisons[0].rows[0], {}
    answer = _add_unserved(question, _write_answer(question))
    if significant:
        row = question.leads[0]
        names = ("model", "a", "b", "mean_a", "mean_b", "difference", "ci_low", "ci_high")
        worst = question.find_worst(row["model"], row["target"])
        facts = {name: row[name] for name in (*names, "p_adjusted")} | {
            "part": row["part"] if question.compares_models else row["target"],
            "worst": tuple(str(group["group"]) for group in worst),
        }
    return Conclusion(
        kind="models" if question.compares_models else "groups",
        metric=question.metric.title,
        dataset=test["dataset"],
        sentence=answer.sentence,
        detail=_combine(answer.detail, _describe_label_errors(question)),
        more=answer.more,
        between=question.between,
        n_tests=len(rows),
        n_significant=len(significant),
        detectable=_find_detectable(undecided),
        effect=next(map(compute_effect, significant or rows), math.nan),
        **{name: test[name] for name in _METHOD},
        **facts,
    )


def split_conclusions(run: RunTables) -> tuple[list[Conclusion], list[Conclusion]]:
    """Return the conclusions on what the spec asks for, at most three, and the others.

    They are on re-ranking, on groups, and on models: of each the metric that the spec names first.
    Of groups, a comparison of groups comes before one of models in a group, a significant one
    before others, and named pairs before all, where the first significant one of others follows.
    A measure of bias follows the accuracy of models, or a significant change of a gap.
    """
    conclusions, definitions = collect_conclusions(run), views.collect_definitions(run)
    order = {title: at for at, title in enumerate(definitions)}
    ranked = sorted(conclusions, key=lambda item: order.get(item.metric, len(order)))
    changes = [item for item in conclusions if item.kind == "reranking"]
    groups = [item for item in ranked if item not in changes and concerns_groups(run, item)]
    asked = {title for title, metric in definitions.items() if metric.parameters.get("pairs")}
    groups.sort(
        key=lambda item: (
            not (item.kind == "groups" and item.metric in asked),
            *(item.n_tests == 0, item.kind != "groups", item.n_significant == 0),
        )
    )
    models = [item for item in ranked if item not in groups and item not in changes]
    accuracy = {title for title, metric in definitions.items() if metric.name in views.ACCURACY}
    bias = [item for item in models[1:] if item.metric not in accuracy]
    of_models = [item for item in groups if item.kind == "models"]
    inside = [item for item in of_models if not definitions[item.metric].gap]
    changed = [item for item in groups[1:] if item in of_models and item not in inside]
    bias += [item for item in changed if item.n_significant]
    bias.sort(key=lambda item: item.n_tests > 0 and item.n_significant == 0)
    found = [item for item in groups[1:] if item.kind == "groups" and item.n_significant]
    found = found[: groups[:1] != [] and groups[0].n_significant == 0]
    first = [*changes[:1], *groups[:1], *found, *models[:1], *bias][:3]
    last = [item for item in groups if item.n_tests == 0 or item in inside]
    if any(item.n_tests and item not in last for item in first):
        first.sort(key=lambda item: item in last)  # no groups are compared by a test
    return first, [item for item in conclusions if item not in first]


def list_losses(run: RunTables) -> list[Conclusion]:
    """Return in which groups, and gaps, a checked model is worse than that of its check."""
    pairs = {(row["model"], row["baseline"]) for row in run.manifest.get("checks", [])}
    losses = []
    for question in views.collect_every_question(run):
        if question.compares_models and question.metric.by:
            parts = (_select_losses(part, pairs) for part in question.comparisons)
            comparisons = tuple(part for part in parts if part.rows)
            if comparisons:
                loss = _conclude(replace(question, comparisons=comparisons))
                more = f"; also for {format_count(len(comparisons) - 1, 'other group')}."
                if comparisons[1:] and len(pairs) == 1:
                    loss = replace(loss, sentence=loss.sentence.removesuffix(".") + more)
                losses.append(loss)
    return losses


def _select_losses(part: views.Comparisons, pairs: Iterable[tuple[str, str]]) -> views.Comparisons:
    wins = views.find_wins(part)
    lost = [{model, other} for model, other in pairs if model in wins.get(other, ())]
    return replace(part, rows=tuple(row for row in part.rows if {row["a"], row["b"]} in lost))


def concerns_groups(run: RunTables, conclusion: Conclusion) -> bool:
    """Return whether a conclusion compares groups, or values of them."""
    metric = views.collect_definitions(run).get(conclusion.metric)
    return conclusion.kind == "groups" or (metric is not None and bool(metric.by))
