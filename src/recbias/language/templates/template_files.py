"""Files of templates: our own YAML, and which reader has the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from pathlib import Path

from recbias.core.errors import WrongType
from recbias.formats.yaml.marked_text import MarkedValue, read_marked
from recbias.language.templates.lmrec_templates import of_json, of_paper
from recbias.language.templates.template_parts import Group, kinds_of, word_list
from recbias.language.templates.template_sets import TemplateSet


def packaged() -> dict[str, TemplateSet]:
    """Return the sets that come with the package, by name."""
    folder = files("recbias.language").joinpath("packaged")
    names = sorted(each.name for each in folder.iterdir() if each.name.endswith(".yaml"))
    made: dict[str, TemplateSet] = {}
    for name in names:
        with as_file(folder.joinpath(name)) as path:
            made[name.removesuffix(".yaml")] = read_templates(path)
    return made


def read_templates(path: Path, words: Sequence[Path] = ()) -> TemplateSet:
    """Return the templates of a file.

    Args:
        path: A ``.json`` file is the LMRec authors'; a YAML with ``substitutions`` is the paper's;
            any other is our own format.
        words: The authors' files of words, each named by its kind: ``names.json``.

    Raises:
        MissingFile: A file cannot be read.
        BadYaml: It is not YAML.
        MalformedLine: It is not of its format: a slot without words, an empty list, and so on.
        WrongType: Files of words are given beside a YAML.
    """
    tree = read_marked(path)
    if path.suffix.lower() == ".json":
        return of_json(tree, words)
    if words:
        found, remedy = f"{path.name} holds its words itself", "leave words out"
        raise WrongType(found, where="words", remedy=remedy)
    if "substitutions" in tree.mapping("the file"):
        return of_paper(tree)
    return _of_own(tree)


def _of_own(tree: MarkedValue) -> TemplateSet:
    top = tree.mapping("the file", ("about", "source", "words", "templates"))
    for key in ("words", "templates"):
        if key not in top:
            raise tree.fault(f"there is no {key!r}", remedy="write words: and templates:")
    lists = {
        slot: word_list(slot, _groups(each), each)
        for slot, each in top["words"].mapping("words").items()
    }
    kinds = kinds_of(top["templates"], lists, {})
    said = {name: top[name].text(name) for name in ("about", "source") if name in top}
    return TemplateSet(said.get("about", ""), said.get("source", ""), kinds)


def _groups(node: MarkedValue) -> Iterator[Group]:
    for each in node.entries("the words of a slot"):
        if isinstance(each.value, str):
            yield Group((each,), {})
            continue
        labels = dict(each.mapping("words with labels"))
        if "words" not in labels:
            raise each.fault("labels without words", remedy="write {gender: female, words: [Ann]}")
        words = labels.pop("words").entries("words")
        yield Group(words, {name: label.text(name) for name, label in labels.items()})
