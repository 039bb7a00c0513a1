"""Which settings of a search mattered: bars of how much each explains."""

from __future__ import annotations

from recbias.reports.markup import Safe, join, tag
from recbias.reports.plots.drawing import svg
from recbias.reports.views.rounding import shown
from recbias.reports.views.trials import Search

_TOP, _ROW, _BAR, _LONGEST = 34.0, 30.0, 18.0, 24


def importance(search: Search, *, name: str) -> svg.Figure | None:
    """Return the bars of a search, the longest first; None where nothing can be told."""
    known = {key: each for key, each in search.importances.items() if svg.fits_axis(each)}
    if not known:
        return None
    ordered = sorted(known.items(), key=lambda each: -each[1])
    left = 16 + max(svg.width_of(svg.shortened(key, _LONGEST)) for key, _ in ordered)
    wide = svg.Scale(0, 1, left, svg.WIDTH - 58.0)
    bottom = _TOP + _ROW * len(ordered)
    bars = [_bar(key, each, _TOP + _ROW * at, wide) for at, (key, each) in enumerate(ordered)]
    return svg.Figure(
        name=name,
        title=f"Which settings mattered: {search.title}",
        caption=_caption(search),
        width=svg.WIDTH,
        height=bottom + 12,
        body=join(
            svg.heading((4, 16), "Importance", "share of what the settings explain"),
            *bars,
            svg.line((left, _TOP), (left, bottom), "axis"),
        ),
    )


def _bar(key: str, share: float, top: float, wide: svg.Scale) -> Safe:
    middle, end = top + _ROW / 2, wide.at(share)
    text = shown(share, 2)
    drawn = tag(
        "rect",
        tag("title", f"{key}: {text}"),
        x=svg.number(wide.start),
        y=svg.number(middle - _BAR / 2),
        width=svg.number(end - wide.start),
        height=svg.number(_BAR),
        class_="bar",
    )
    label = svg.text((wide.start - 8, middle + 4.5), svg.shortened(key, _LONGEST), "end")
    return join(drawn, label, svg.text((end + 7, middle + 4.5), text, "tick"))


def _caption(search: Search) -> str:
    ended = search.count("pruned")
    what = "the best nDCG@10 of an epoch" if ended else search.metric
    return (
        f"How much of the variation of {what} over {len(search.done) + ended:,} trials each "
        "setting explains by itself, made to add up to 1: a functional analysis of variance of a "
        "random forest. Few trials give a rough picture only."
    )
