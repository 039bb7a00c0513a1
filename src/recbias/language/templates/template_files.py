"""Template files: the project's own YAML format, and the choice of the reader of other formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from pathlib import Path

from recbias.core.errors import WrongType
from recbias.formats.yaml.marked_text import MarkedValue, read_marked
from recbias.language.templates.lmrec_templates import parse_authors_json, parse_paper
from recbias.language.templates.template_parts import Group, merge_groups, parse_kinds
from recbias.language.templates.template_sets import TemplateSet


def load_packaged() -> dict[str, TemplateSet]:
    """Return the packaged sets of templates by name."""
    folder = files("recbias.language").joinpath("packaged")
    with as_file(folder) as path:
        return {file.stem: read_templates(file) for file in sorted(path.glob("*.yaml"))}


def read_templates(path: Path, words: Sequence[Path] = ()) -> TemplateSet:
    """Return the templates of a file.

    Args:
        path: A ``.json`` file is in the format of the LMRec authors, a YAML file with
            ``substitutions`` in that of their paper, and any other YAML file in the project's own.
        words: The authors' files of words, named by kind: ``names.json``.

    The errors are those of ``Templates``.
    """
    tree = read_marked(path)
    if path.suffix.lower() == ".json":
        return parse_authors_json(tree, words)
    if words:
        message, remedy = f"{path.name} already contains its words", "remove the setting words"
        raise WrongType(message, where="words", remedy=remedy)
    if "substitutions" in tree.mapping("the file"):
        return parse_paper(tree)
    return _parse_own(tree)


def _parse_own(tree: MarkedValue) -> TemplateSet:
    top = tree.mapping("the file", ("about", "source", "words", "templates"))
    for key in ("words", "templates"):
        if key not in top:
            raise tree.fault(f"there is no {key!r}", remedy="write words: and templates:")
    word_lists = {
        slot: merge_groups(slot, _iterate_groups(node), node)
        for slot, node in top["words"].mapping("words").items()
    }
    kinds = parse_kinds(top["templates"], word_lists, {})
    about, source = (top[key].text(key) if key in top else "" for key in ("about", "source"))
    return TemplateSet(about, source, kinds)


def _iterate_groups(node: MarkedValue) -> Iterator[Group]:
    for entry in node.entries("the words of a slot"):
        if isinstance(entry.value, str):
            yield Group((entry,), {})
            continue
        labels = dict(entry.mapping("words with labels"))
        if "words" not in labels:
            remedy = "write {gender: female, words: [Ann]}"
            raise entry.fault("labels without words", remedy=remedy)
        words = labels.pop("words").entries("words")
        yield Group(words, {name: label.text(name) for name, label in labels.items()})
