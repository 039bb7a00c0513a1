"""Generate docs/plugins, the columns of result files, and the tables of keys of a spec.

Run by ``make pages``. Do not edit by hand what it writes: docs/plugins, docs/columns.md, and in
experiment-file.md what stands between ``<!-- generated: keys -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from recbias.cli.catalogue import Page, read_page, split_blocks, split_entries
from recbias.config.schema import build_json_schema
from recbias.config.settings import Parameter
from recbias.core.measures import TABLES
from recbias.registry import REGISTRIES

DOCS = Path(__file__).parent
FOLDER = DOCS / "plugins"
FAMILIES = {
    "metrics": {
        "Accuracy: do lists hold what users chose?": (
            *("nDCG", "HR", "MRR", "MAP", "mean_precision", "Precision", "Recall"),
            *("R-Precision", "F1", "propensity_nDCG", "propensity_recall", "propensity_MAP"),
        ),
        "Popularity bias: are popular items recommended too often?": (
            *("log_popularity_difference", "popularity_lift", "gini_difference"),
            *("herfindahl_difference", "popularity_rank_correlation", "ARP", "APLT", "ACLT"),
            *("PopREO", "PopRSP"),
        ),
        "Coverage and concentration: is the whole catalogue recommended?": (
            *("ItemCoverage", "Gini", "Entropy", "Jain", "FSat", "corrected_Jain"),
            *("corrected_QF", "corrected_Entropy", "corrected_Gini", "corrected_FSat"),
        ),
        "Novelty, diversity and personalisation: are lists new, varied and personal?": (
            *("self_information", "unexpectedness", "serendipity", "intra_list_distance"),
            *("inter_user_distance", "calibration_kl", "calibration_js", "homogenization"),
            "relative_utility",
        ),
        "Exposure: do providers, groups of items and single items get their due?": (
            *("AWRF", "AWRF-min-max", "exposure_gap", "EXP", "EXPU", "EXPRU", "EE-D", "EE-R"),
            *("EE-L", "provider_gap", "provider_gini", "IAA", "II-F", "AI-F"),
        ),
        "Logs of impressions: what was shown, and what would have been?": (
            *("click_through_rate", "shown_nDCG", "shown_share", "policy_value"),
            *("effective_sample_size", "position_bias", "examination_sensitivity"),
            "propensity_sensitivity",
        ),
        "Labels and stereotypes: what kind of items are users shown?": (
            *("HIT_BAD", "MRR_BAD", "REC-ST", "labelled_items", "label_accuracy"),
            *("cohen_kappa", "krippendorff_alpha"),
        ),
        "Prompts with names of groups: do other people get other items?": (
            *("mean_attribute", "price_percentage", "association", "variance_split"),
            *("attribute_share", "top_words", "catalogue_counts"),
        ),
        "Chat models: does a stated identity, or the order of items, change the list?": (
            *("identity_effect", "overlap_spread", "list_overlap", "unmatched"),
            *("order_agreement", "first_slot_share"),
        ),
        "Embeddings: do vectors associate groups with items?": (
            *("DEAA", "EAA", "GEAA", "R-RIPA", "direction_checks", "direction_similarity"),
            *("attribute_classification", "latent_projection"),
        ),
        "Sentences and responses: how likely are they, and how good?": (
            *("perplexity_gap", "BLEU", "ROUGE-L", "distinct", "unigram_F1"),
            *("embedding_average", "greedy_matching", "human_rate", "human_score"),
            "human_agreement",
        ),
        "Reviews: does a language model find the item of a text?": (
            *("class_accuracy", "class_precision", "class_recall", "class_F1", "class_MRR"),
            *("class_HR", "category_precision", "category_R-precision", "category_MAP"),
            *("category_MRR", "category_nDCG"),
        ),
    },
    "models": {
        "Baselines and neighbours": (
            *("Random", "MostPop", "ItemKNN", "UserKNN", "AttributeItemKNN"),
            *("AttributeUserKNN", "VSM"),
        ),
        "Linear models and factorization": (
            *("PureSVD", "EASE", "SLIM", "BPR-MF", "MF", "FunkSVD", "PMF", "MF2020", "AMF"),
        ),
        "Neural models": (
            *("NeuMF", "DeepFM", "MultiVAE", "ConvMF", "LightGCN", "SASRec", "GRU4Rec"),
            "BERT4Rec",
        ),
        "Other libraries": ("implicit/", "lenskit/"),
        "Language models": (
            *("WOK", "LMRerank", "ChatRecommender", "LMLikelihood", "LMRec", "TFIDF-LR"),
            *("Encoder-LR", "language_model"),
        ),
        "Results of other tools": (
            *("lists", "vectors", "sentence_scores", "responses", "lmrec_lists", "shown"),
            "policy",
        ),
    },
}
"""The headings of the long lists: each name, or the beginning of names, is under one of them."""
TITLES = {
    "queries": "Queries",
    "rerankers": "Re-rankers",
    "tests": "Tests",
}
KEYS = {"datasets": "dataset", "splits": "split", "queries": "queries"}
"""Keys of a spec that take one plug-in; the other kinds take a list."""
SHOWN = {"LMLikelihood": ("model", "..."), "period": ("since", "2008-01-01")}
"""The setting to show, and its value, of plug-ins that need one of several."""


def list_kinds() -> list[str]:
    """Return the kinds that have plug-ins, those of many first."""
    others = [kind for kind in REGISTRIES if kind not in FAMILIES and REGISTRIES[kind].table]
    return [*FAMILIES, *others]


def render_pages() -> dict[str, str]:
    """Return the text of the page of each built-in plug-in by its path below docs/plugins."""
    pages = {
        f"{kind}/{name_file(name)}": _render_page(kind, read_page(kind, name))
        for kind, registry in REGISTRIES.items()
        for name in registry.table
    }
    return {"index.md": _render_index(), **pages}


def name_file(name: str) -> str:
    """Return the file name of a plug-in's page: ``implicit-ALS.md``."""
    return f"{name.replace('/', '-').replace('*', '-')}.md"


def group_names(kind: str) -> dict[str, list[str]]:
    """Return the names of a kind by the headings of `FAMILIES`, or all without a heading."""
    names = list(REGISTRIES[kind].table)
    families = FAMILIES.get(kind, {"": tuple(names)})
    groups = {
        title: [
            name
            for entry in entries
            for name in names
            if name == entry or (entry.endswith("/") and name.startswith(entry))
        ]
        for title, entries in families.items()
    }
    lost = {*names}.difference(*groups.values())
    if lost:
        message = f"FAMILIES of docs/make_plugin_pages.py lacks {', '.join(sorted(lost))}"
        raise SystemExit(message)
    return groups


def render_navigation() -> str:
    """Return the sidebar of the plug-ins, which `docs/navigation.py` adds to that of the site."""
    kinds: list[Any] = ["plugins/index.md"]
    for kind in list_kinds():
        entries: list[Any] = []
        for title, names in group_names(kind).items():
            pages = [{name: f"plugins/{kind}/{name_file(name)}"} for name in names]
            entries += [{title.partition(":")[0]: pages}] if title else pages
        kinds.append({_name_kind(kind): entries})
    return json.dumps(kinds, indent=1, ensure_ascii=False) + "\n"


def _name_kind(kind: str) -> str:
    return TITLES.get(kind, kind.capitalize())


def _render_index() -> str:
    lines = [
        "# Plug-ins",
        "",
        "One page for each name that a spec can use: its formula, settings, range and source.",
        "`recbias show NAME` prints the same in the terminal. Not sure which metric?",
        "[Choose a measure](../guides/choose-a-measure.md) starts from the question.",
        "",
        "- **Metrics**: " + ", ".join(_link_families("metrics")),
        "- **Models**: " + ", ".join(_link_families("models")),
        "- "
        + ", ".join(
            f"[{_name_kind(kind)}](#{_name_kind(kind).lower()})"
            for kind in list_kinds()
            if kind not in FAMILIES
        ),
    ]
    for kind in list_kinds():
        lines += ["", f"## {_name_kind(kind)}"]
        for title, names in group_names(kind).items():
            lines += ["", f"### {title}"] if title else []
            lines += ["", "| name | description |", "|---|---|"]
            lines += [
                f"| [{name}]({kind}/{name_file(name)}) "
                f"| {_format_cell(read_page(kind, name).summary)} |"
                for name in names
            ]
    return "\n".join(lines) + "\n"


def _link_families(kind: str) -> Iterator[str]:
    for title in FAMILIES[kind]:
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        name = title.partition(":")[0]
        yield f"[{name[:1].lower() + name[1:]}](#{anchor})"


def _render_page(kind: str, page: Page) -> str:
    parts = [
        f"# {page.name}",
        f"A {page.kind}. [All plug-ins](../index.md)",
        _format_prose(page.body, [page.name, *(row.name for row in page.parameters)]),
        "In a spec, with the defaults:",
        _fence("yaml", _write_spec(kind, page)),
        *_render_parameters(page),
        *_render_facts(page),
    ]
    if page.errors:
        rows = [f"- `{name}`: {_escape(when)}" for name, when in split_entries(page.errors)]
        parts += ["## Errors", "\n".join(rows)]
    if page.example:
        parts += ["## From Python", _fence("python", page.example)]
    if page.source:
        parts += ["## Source", _escape(" ".join(page.source.split()))]
    return "\n\n".join(parts) + "\n"


def _render_parameters(page: Page) -> Iterator[str]:
    if not page.parameters:
        return
    yield "## Parameters"
    headings = ("name", "type", "default", "range", "description")
    rows = [
        (
            f"`{row.name}`",
            _format_cell(row.type),
            _format_default(row),
            _format_cell(row.range),
            _format_cell(row.doc),
        )
        for row in page.parameters
    ]
    yield "\n".join(f"| {' | '.join(row)} |" for row in (headings, ["---"] * len(headings), *rows))


def _format_default(row: Parameter) -> str:
    if row.needed:
        return "required"
    return f"`{_format_cell(row.default)}`" if row.default else "empty"


def _render_facts(page: Page) -> Iterator[str]:
    if page.facts:
        yield "\n".join(f"- **{name}**: {_escape(value)}" for name, value in page.facts.items())


def _write_spec(kind: str, page: Page) -> str:
    """Return a plug-in as part of a spec: its defaults, and dots for required settings."""
    shown, example = SHOWN.get(page.name, ("", ""))
    rows = [row for row in page.parameters if row.default != "null" or row.name == shown]
    values = (
        example if row.name == shown else "..." if row.needed else _write_value(row.default)
        for row in rows
    )
    pairs = [f"{row.name}: {value}" for row, value in zip(rows, values, strict=True)]
    if kind == "detectors":
        return (
            f"labels:\n  - {{{', '.join(['name: my_label', f'detector: {page.name}', *pairs])}}}"
        )
    entry = f"{{{', '.join([f'name: {page.name}', *pairs])}}}" if rows else page.name
    if kind == "rerankers":
        return f"models:\n  - {{name: EASE, rerank: {entry}}}"
    if kind == "filters":
        return f"dataset:\n  name: demo\n  filters:\n    - {entry}"
    return f"{KEYS[kind]}: {entry}" if kind in KEYS else f"{kind}:\n  - {entry}"


def _write_value(default: str) -> str:
    """Return a default as it stands in a spec: text of several lines in quotes."""
    return json.dumps(default) if "\n" in default else default or repr("")


def _format_prose(text: str, names: Iterable[str] = ()) -> str:
    """Return a description in Markdown, with formulas set as such."""
    return "\n\n".join(
        _format_formula(block, names) if block.startswith("    ") else _set_symbols(_escape(block))
        for block in split_blocks(text)
    )


def _format_formula(text: str, names: Iterable[str]) -> str:
    """Return a formula as HTML that wraps: subscripts, superscripts and italic variables."""
    lines = [_set_formula(line.strip(), names) for line in text.strip().splitlines()]
    return '<div class="formula">' + "<br>\n".join(lines) + "</div>"


def _set_formula(line: str, names: Iterable[str]) -> str:
    text = line.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")
    text = text.replace("*", "&#42;")
    words = re.findall(r"\b[a-z]{5,}_[a-z]{4,}\b", text)
    for name in (*names, *words):  # an underscore of these is no subscript
        text = re.sub(rf"\b{re.escape(name)}\b", name.replace("_", "&#95;"), text)
    for mark, tag in (("_", "sub"), (r"\^", "sup")):
        text = re.sub(mark + r"\{([^{}]*)\}", rf"<{tag}>\1</{tag}>", text)
        text = re.sub(mark + r"\(([^()]*)\)", rf"<{tag}>(\1)</{tag}>", text)
        short = r"((?:&#42;|[A-Za-z0-9*γη+-]+)(?:,[a-z])*)"
        text = re.sub(rf"(?<=[^\s(]){mark}{short}", rf"<{tag}>\1</{tag}>", text)
    text = re.sub(r"<sub>([^<>]*) in ([^<>]*)</sub>", r"<sub>\1 ∈ \2</sub>", text)
    text = re.sub(r"<sub>([a-z]{2})</sub>", r"<sub><i>\1</i></sub>", text)
    return re.sub(r"(?<![A-Za-z0-9_&#-])([A-Za-z])(?![A-Za-z0-9_;>])", r"<i>\1</i>", text)


def _set_symbols(text: str) -> str:
    """Return prose whose symbols, such as ``n_i``, have subscripts, outside of code marks."""
    pieces = text.split("`")
    return "`".join(
        piece if number % 2 else _SYMBOL.sub(_set_symbol, piece)
        for number, piece in enumerate(pieces)
    )


_SYMBOL = re.compile(
    r"(?P<base>\b[A-Za-zφπγ]|Σ|\bmean|\bmax|\bmin)(?P<star>\*?)"
    r"(?:_(?:(?P<short>[a-z0-9]{1,3}|[A-Z])(?![\w-])|\{(?P<long>[^{}]{1,12})\})"
    r"|\^(?P<power>\([^()]*\)|[A-Za-z0-9]\b))"
)


def _set_symbol(found: re.Match[str]) -> str:
    power, low = found["power"], found["short"] or found["long"]
    place = f"<sup>{power}</sup>" if power else f"<sub>{low.replace(' in ', ' ∈ ')}</sub>"
    return f"{found['base']}{found['star'] and '&#42;'}{place}"


def _fence(language: str, text: str) -> str:
    lines = text.splitlines()
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join([f"```{language}", *(line[indent:] for line in lines), "```"])


def _escape(text: str) -> str:
    """Return text with Markdown code marks, and HTML escaped outside of them."""
    pieces = text.split("``")
    return "`".join(
        piece if number % 2 else piece.replace("<", "&lt;") for number, piece in enumerate(pieces)
    )


def _format_cell(text: str) -> str:
    return _escape(" ".join(text.split())).replace("|", "\\|")


def render_columns() -> str:
    """Return the columns of all result files: one row for each meaning, with its files."""
    files: dict[tuple[str, str], list[str]] = {}
    for table in TABLES:
        for column in table.columns:
            files.setdefault((column.name, column.meaning), []).append(table.file)
    everywhere = [table.file for table in TABLES]
    rows = [
        f"| `{name}` | {meaning} | {_list_files(found, everywhere)} |"
        for (name, meaning), found in files.items()
    ]
    text = (
        f"The files are {', '.join(f'`{file}`' for file in everywhere)}. What each of them holds:"
    )
    head = [
        "# Columns of result files",
        "",
        *textwrap.wrap(text, 130),
        "[result files](results.md). Generated by `make pages`.",
        "",
        "| column | meaning | in |",
        "|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])


def _list_files(found: list[str], everywhere: list[str]) -> str:
    others = [f"`{file}`" for file in everywhere if file not in found]
    if len(others) < len(found):
        return "all" + (f" but {', '.join(others)}" if others else "")
    return ", ".join(f"`{file}`" for file in found)


def render_keys(path: str) -> str:
    """Return the keys of the experiment file below a path, of the schema, as a table."""
    node: Mapping[str, Any] = build_json_schema(REGISTRIES)
    for name in filter(None, path.split(".")):
        node = node["properties"][name]
        options = node.get("anyOf", [node])
        node = next(option for option in options if option.get("type") in {"object", "array"})
        node = node.get("items", node)
    required = node.get("required", [])
    keys = sorted(node["properties"], key=lambda name: name not in required)
    rows = [
        f"| `{name}` | {_format_cell(node['properties'][name].get('description', ''))} | "
        f"{'required' if name in required else _show_default(node['properties'][name])} |"
        for name in keys
    ]
    return "\n".join(["| key | holds | default |", "|---|---|---|", *rows])


def _show_default(key: Mapping[str, Any]) -> str:
    default = key.get("default")
    if isinstance(default, dict | list) or default is None:
        return ""
    return f"`{json.dumps(default).strip(chr(34))}`"


def fill_page(text: str) -> str:
    """Return a page with its generated parts written again."""
    return re.sub(
        r"(<!-- generated: keys ?([\w.]*) -->\n).*?(<!-- end -->)",
        lambda found: f"{found[1]}\n{render_keys(found[2])}\n\n{found[3]}",
        text,
        flags=re.DOTALL,
    )


def render_others() -> dict[str, str]:
    """Return the other generated files by their path below docs."""
    return {
        "columns.md": render_columns(),
        "plugins/navigation.json": render_navigation(),
        "experiment-file.md": fill_page((DOCS / "experiment-file.md").read_text("utf-8")),
    }


def write_pages() -> None:
    """Write all pages and delete pages of plug-ins that no longer exist."""
    pages = render_pages()
    for path in FOLDER.rglob("*.md"):
        if path.relative_to(FOLDER).as_posix() not in pages:
            path.unlink()
    files = {FOLDER / name: text for name, text in pages.items()}
    files |= {DOCS / name: text for name, text in render_others().items()}
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_pages()
