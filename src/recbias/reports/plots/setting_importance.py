"""Which settings of a search mattered: the share of the variation that each explains."""

from __future__ import annotations

from recbias.reports.markup import Safe, join
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.scales import Scale, fits_axis
from recbias.reports.plots.drawing.text_size import estimate_width, shorten
from recbias.reports.views.rounding import format_value
from recbias.reports.views.trials import Search

_TOP, _ROW, _BAR, _LONGEST = 34.0, 30.0, 18.0, 24


def draw_setting_importance(search: Search, *, name: str) -> svg.Plot | None:
    """Return the bars of a search, the longest first; None if no importance is known."""
    shares = {key: share for key, share in search.importances.items() if fits_axis(share)}
    if not shares:
        return None
    ranked = sorted(shares, key=lambda key: -shares[key])
    left = 16 + max(estimate_width(shorten(key, _LONGEST)) for key in ranked)
    scale = Scale(0, 1, left, svg.WIDTH - 58.0)
    bottom = _TOP + _ROW * len(ranked)
    return svg.Plot(
        name=name,
        title=f"Which settings mattered: {search.title}",
        caption=_write_caption(search),
        height=bottom + 12,
        body=join(
            svg.draw_title((4, 16), "Importance", "share of what the settings explain"),
            *(
                _draw_bar(key, shares[key], _TOP + _ROW * position, scale)
                for position, key in enumerate(ranked)
            ),
            svg.draw_line((left, _TOP), (left, bottom), "axis"),
        ),
    )


def _draw_bar(key: str, share: float, top: float, scale: Scale) -> Safe:
    middle, end = top + _ROW / 2, scale.at(share)
    text = format_value(share, 2)
    corner, size = (scale.start, middle - _BAR / 2), (end - scale.start, _BAR)
    return join(
        svg.draw_rectangle(corner, size, "bar", f"{key}: {text}"),
        svg.draw_text((scale.start - 8, middle + 4.5), shorten(key, _LONGEST), "end"),
        svg.draw_text((end + 7, middle + 4.5), text, "tick"),
    )


def _write_caption(search: Search) -> str:
    n_pruned = search.count("pruned")
    target = "the best nDCG@10 of an epoch" if n_pruned else search.metric
    return (
        f"The share of the variance of {target} over {len(search.done) + n_pruned:,} trials that "
        "each setting explains by itself, scaled to sum to 1: functional ANOVA of a random "
        "forest. With few trials the shares are rough."
    )
