"""The most frequent words in the names of the items recommended under each label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recbias.core.errors import MissingEvidence
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing.axes import Interval
from recbias.reports.plots.drawing.svg import Plot
from recbias.reports.plots.papers import forest
from recbias.reports.views.run_tables import RunTables

PLUGIN = "top_words"
MOST_WORDS = 30
"""Words in a plot; the table has the others."""


def draw_word_counts(run: RunTables, dataset: str, name_file: rows.NameFile) -> Iterator[Plot]:
    """Yield a plot for each metric of word counts, and each model.

    Raises:
        MissingEvidence: A metric has no word.
    """
    for metric in rows.find_metrics(run, PLUGIN):
        counts = [
            row for row in rows.list_rows(run, metric, dataset) if row["group"] and row["target"]
        ]
        if not counts:
            raise MissingEvidence(f"{metric.heading} has no word in the recommended names")
        models = rows.sort_models(run, (row["model"] for row in counts))
        for model in models[: rows.MOST_MODELS]:
            model_counts = [row for row in counts if row["model"] == model]
            plot = _draw_plot(model_counts, name_file)
            note = rows.describe_undrawn(run, [metric], dataset, model=model)
            yield rows.add_omitted(plot, models, note)


def _draw_plot(counts: Sequence[rows.Row], name_file: rows.NameFile) -> Plot:
    groups = rows.list_distinct(counts, "group")
    largest = {
        word: max(row["value"] for row in counts if row["target"] == word)
        for word in rows.list_distinct(counts, "target")
    }
    words = sorted(largest, key=lambda word: (-largest[word], word))
    lines = []
    for word in words[:MOST_WORDS]:
        word_rows = [row for row in counts if row["target"] == word]
        word_rows.sort(key=lambda row: groups.index(row["group"]))
        marks = tuple(
            forest.Mark(
                Interval.of_row(row),
                groups.index(row["group"]),
                f"{row['target']}, {row['group']}: {row['value']:,.6g}",
            )
            for row in word_rows
        )
        lines.append(forest.Row(rows.get_label_value(word), marks))
    label = rows.get_label_name(groups) or "label"
    model = counts[0]["model"]
    return forest.draw_forest(
        forest.Forest(
            panels=(forest.Panel("", tuple(lines)),),
            series=tuple(map(rows.get_label_value, groups)),
            axis="Occurrences in the names of the recommended items",
        ),
        name=name_file(f"words-{label}-{model}"),
        title=f"Words in recommended names by {label}: {model}",
        caption=_write_caption(counts, groups, words, label),
    )


def _write_caption(
    counts: Sequence[rows.Row], groups: Sequence[str], words: Sequence[str], label: str
) -> str:
    sentences = [
        f"How often the names of the items recommended under each {label} have a word.",
        "An item that is recommended again counts again.",
    ]
    for group in groups:
        others = {row["target"] for row in counts if row["group"] != group}
        own = [row for row in counts if row["group"] == group and row["target"] not in others]
        if own and len(groups) > 1:
            own.sort(key=lambda row: (-row["value"], row["target"]))
            names = rows.join_names([rows.get_label_value(row["target"]) for row in own], 4)
            sentences.append(f"Frequent for {rows.get_label_value(group)} only: {names}.")
    if len(words) > MOST_WORDS:
        sentences.append(f"{len(words) - MOST_WORDS} rarer words are in the table only.")
    sentences.append("A word without a mark for a label is not among its most frequent ones.")
    return " ".join(sentences)
