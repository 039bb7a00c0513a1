"""The answer of each question in plain sentences, no stronger than its tests."""

from __future__ import annotations

import math
from collections.abc import Sequence

from recbias.reports.markup import to_line
from recbias.reports.views.comparisons import Row, find_wins, is_significant
from recbias.reports.views.conclusions.effects import explain_zero
from recbias.reports.views.conclusions.phrases import (
    UNDEFINED_REASONS,
    Answer,
    describe_difference,
    describe_interval,
    describe_p_value,
    describe_power,
    describe_side,
    describe_test,
    describe_worst,
    format_size,
    make_positive,
    measure_places,
    name_metric,
    name_models,
    name_side,
    orient,
)
from recbias.reports.views.conclusions.questions import Question
from recbias.reports.views.definitions import DIRECTION_LABELS, flag_best
from recbias.reports.views.rounding import count_decimals, format_count, format_value


def write_answer(question: Question) -> Answer:
    """Return the answer: the largest significant difference, or what could have been detected."""
    if not question.rows:
        return _write_undefined(question)
    if question.compares_models and not question.comparisons[0].part and _list_best(question):
        return _write_best(question)
    if not question.significant:
        return _write_no_difference(question)
    if question.compares_models:
        return _write_models(question)
    return _write_contrast(question)


def _write_undefined(question: Question) -> Answer:
    sentence = (
        f"{name_metric(question)}: no test between {question.between} could be computed for "
        f"{name_models(question.models)}, so whether they differ is undefined"
        f"{UNDEFINED_REASONS.get(question.between, '')}."
    )
    return Answer(sentence, describe_test(question))


def _write_no_difference(question: Question) -> Answer:
    rows, models = question.rows, question.models
    sides = list(
        dict.fromkeys(name_side(question, row, side) for row in rows for side in ("a", "b"))
    )
    named = " and ".join(sides) if len(sides) == 2 else question.between
    within = "" if question.compares_models else f" for {name_models(models)}"
    sentence = (
        f"No difference between {named} found in {name_metric(question)}{within}; "
        f"{describe_power(question, rows)}."
    )
    if question.ratios:
        clearest = min(question.ratios, key=lambda row: float(row["p_adjusted"]))
        sentence += f" The ratio of the groups differs ({describe_p_value(clearest)})."
    if len(rows) == 1:
        places = measure_places(rows[0])
        difference = f"difference {describe_difference(rows[0], places)}"
        test = describe_test(question, rows[0], difference)
    else:
        smallest = describe_p_value(min(rows, key=lambda row: float(row["p_adjusted"])))
        test = describe_test(
            question, result=f"{format_count(len(rows), 'test')}, smallest {smallest}"
        )
    worst = describe_worst(question, models[0], "") if len(models) == 1 else ""
    return Answer(sentence, f"{test}{worst}")


def _write_contrast(question: Question) -> Answer:
    """Return who is treated differently within a model, and by how much."""
    row, *others = question.select_leads()
    places = measure_places(row)
    target = f" for {to_line(row['target'])}" if row["target"] else ""
    sides = [describe_side(question, row, side, places) for side in ("a", "b")]
    lead = f"{to_line(row['model'])}: {name_metric(question)}{target}"
    if _measures_sides(question, row):
        fact = f"{_state_order(question, row, places)} for {sides[0]} than for {sides[1]}"
        sentence = f"{lead} {fact}, {describe_interval(make_positive(row), places)}"
        sentence += f"{_write_second(question, row, others)}."
    elif math.isnan(row["mean_a"]) or math.isnan(row["mean_b"]):
        named = " and ".join(name_side(question, row, side) for side in ("a", "b"))
        sentence = f"{lead} of {named} is {describe_difference(row, places)}."
    elif row["test"] == "welch_anova":
        difference = format_size(question, row["difference"], places)
        sentence = f"{lead} differs, most between {sides[0]} and {sides[1]}: by {difference}."
    else:
        sentence = (
            f"{lead} differs between {sides[0]} and {sides[1]}, the means that its test compares: "
            f"by {describe_difference(row, places)}."
        )
    worst = describe_worst(question, row["model"], row["target"], (row["a"], row["b"]))
    zero = f" {text}" if (text := explain_zero([row])) else ""
    rest = f"{zero}{_count_others(question)}{_write_undecided(question)}"
    return Answer(sentence, f"{describe_test(question, row)}{worst}{rest}")


def _write_second(question: Question, row: Row, others: Sequence[Row]) -> str:
    """Return the largest difference of the second model, blank if there are none or several."""
    if len(others) != 1 or row["target"] or not _measures_sides(question, others[0]):
        return ""
    (other,) = others
    order = _state_order(question, other, measure_places(other)).removeprefix("is ")
    text = f"; {to_line(other['model'])}: {order}"
    if (other["a"], other["b"]) == (row["a"], row["b"]):
        return text
    first, second = (name_side(question, other, side) for side in ("a", "b"))
    return f"{text} for {first} than for {second}"


def _state_order(question: Question, row: Row, places: int) -> str:
    size = format_size(question, row["difference"], places)
    return f"is {size} {'higher' if row['difference'] > 0 else 'lower'}"


def _measures_sides(question: Question, row: Row) -> bool:
    """Return whether the test compares the values of the metric, and not others."""
    estimates = [question.estimates.get((row["model"], row[s], row["target"])) for s in "ab"]
    means = row["mean_a"], row["mean_b"]
    return row["difference"] != 0 and all(
        estimate is not None and math.isclose(estimate["value"], mean, rel_tol=1e-9, abs_tol=1e-12)
        for estimate, mean in zip(estimates, means, strict=True)
    )


def _count_others(question: Question) -> str:
    """Return how many other comparisons of the metric are significant, and in which models."""
    first = question.significant[0] if question.compares_models else question.select_leads()[0]
    others = [row for row in question.significant if row is not first]
    if not others:
        return ""
    models = list(dict.fromkeys(to_line(row["model"]) for row in others if row["model"]))
    within = f" ({', '.join(models)})" if 0 < len(models) <= 4 and len(question.models) > 1 else ""
    verb = "is" if len(others) == 1 else "are"
    total = format_count(len(question.rows), "test")
    return f" Of the {total} on it, {len(others):,} more {verb} significant{within}."


def _write_undecided(question: Question) -> str:
    rows = question.select_undecided()
    if not rows or question.compares_models:
        return ""
    models = list(dict.fromkeys(str(row["model"]) for row in rows))
    return f" No difference found for {name_models(models)}; {describe_power(question, rows)}."


def _write_models(question: Question) -> Answer:
    """Return the largest difference between models, where none is better by direction."""
    row = question.significant[0]
    places = measure_places(row)
    names = (name_side(question, row, name) for name in ("group", "target") if row[name])
    parts = ", ".join(names)
    part = f" for {parts}" if parts else ""
    a, b = (describe_side(question, row, side, places) for side in ("a", "b"))
    sentence = (
        f"{name_metric(question)}{part} {_state_order(question, row, places)} for {a} than for "
        f"{b}, {describe_interval(make_positive(row), places)}."
    )
    return Answer(sentence, f"{describe_test(question, row)}{_count_others(question)}")


def _list_best(question: Question) -> list[str]:
    """Return the models with the best value in the metric's direction."""
    values = {name: _get_value(question, name) for name in question.models}
    flags = flag_best(values.values(), question.metric.direction)
    return [name for name, best in zip(values, flags, strict=True) if best]


def _get_value(question: Question, model: str) -> float:
    row = question.estimates.get((model, "", ""))
    return math.nan if row is None else float(row["value"])


def _write_best(question: Question) -> Answer:
    """Return the best model and which models it is significantly better than."""
    (best, *ties), models = _list_best(question), question.models
    wins = find_wins(question.comparisons[0])
    if ties or not any(wins.values()):
        return _write_tie(question, [best, *ties])
    places = count_decimals(_get_value(question, name) for name in models)
    value = format_value(_get_value(question, best), places)
    if len(models) == 2:
        row, other = orient(question.rows[0], best), next(n for n in models if n != best)
        against = format_value(_get_value(question, other), places)
        sentence = (
            f"{to_line(best)} has the better value of {name_metric(question)}: {value} against "
            f"{against} of {to_line(other)}, difference {describe_difference(row, places)}."
        )
        return Answer(sentence, f"{describe_test(question, row)} {_state_direction(question)}")
    lead = f"{to_line(best)} has the best value of {name_metric(question)}, {value}:"
    margin, test = _describe_margin(question, best, len(wins[best]), places)
    return Answer(f"{lead} {margin}", f"{test} {_state_direction(question)}")


def _state_direction(question: Question) -> str:
    return f"{DIRECTION_LABELS[question.metric.direction].capitalize()}."


def _describe_margin(question: Question, best: str, n_beaten: int, places: int) -> Answer:
    """Return how many models the best one is significantly better than, and what is undecided."""
    rivals = [row for row in question.rows if best in (row["a"], row["b"])]
    n_others = len(question.models) - 1
    if n_beaten == n_others:
        closest = min(rivals, key=lambda row: float(abs(row["difference"])))
        difference = describe_difference(orient(closest, best), places)
        rival = _name_rivals([closest], best)
        smallest = f"smallest difference {difference}, from {rival}"
        sentence = f"significantly better than each of the {n_others:,} others; {smallest}."
        return Answer(sentence, describe_test(question, closest))
    beaten = f"{n_beaten:,} of the {n_others:,} others" if n_beaten else "none of the others"
    undecided = [row for row in rivals if not is_significant(row)]
    sentence = f"significantly better than {beaten}."
    if undecided:
        names = _name_rivals(undecided, best)
        sentence += f" No difference from {names} found; {describe_power(question, undecided)}."
    return Answer(sentence, describe_test(question))


def _name_rivals(rows: Sequence[Row], best: str) -> str:
    names = [to_line(row["b"] if row["a"] == best else row["a"]) for row in rows]
    return ", ".join(names) if 0 < len(names) <= 3 else "the others"


def _write_tie(question: Question, best: Sequence[str]) -> Answer:
    """Return that no model is shown to be better than another."""
    if question.significant:
        answer = _write_models(question)
        lead = f"No model is shown to be better in {name_metric(question)}, although values differ"
        return answer._replace(sentence=f"{lead}: {answer.sentence}")
    answer = _write_no_difference(question)
    if len(best) > 1 and any(row["difference"] != 0 for row in question.rows):
        equal = f" {' and '.join(map(to_line, best))} have equal values."
        return answer._replace(sentence=f"{answer.sentence}{equal}")
    return answer
