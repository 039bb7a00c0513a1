"""Prompts from templates: sentences with slots, filled with labelled words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le

from recbias.core.dataset.dataset import Dataset
from recbias.core.errors import Contradiction, UnknownName, UserError, WrongType
from recbias.core.protocols import InputFile
from recbias.core.queries.queries import SAMPLE, Queries
from recbias.core.suggestions import suggest
from recbias.formats.yaml import MarkedValue, read_marked
from recbias.language.templates.lmrec_templates import parse_authors_json, parse_paper
from recbias.language.templates.template_parts import Group, merge_groups, parse_kinds
from recbias.language.templates.template_sets import (
    NEUTRAL,
    Kind,
    TemplateSet,
    add_samples,
    fill_templates,
    refuse_equal_ids,
)


def load_packaged() -> dict[str, TemplateSet]:
    """Return the packaged sets of templates by name."""
    with as_file(files("recbias.language").joinpath("packaged")) as folder:
        return {file.stem: read_templates(file) for file in sorted(folder.glob("*.yaml"))}


@dataclass(frozen=True, kw_only=True)
class Templates:
    """Query with sentences that differ in a word only: every template with every word.

    The labels of a prompt are its ``kind``, its ``template`` (``names-03``), the word in each slot
    (``name``, or ``first`` and ``second``, or ``location``) and the labels of these words:
    ``race``, ``gender``; ``first_gender``, ``second_gender`` and ``orientation`` (homosexual if
    the two genders are equal); ``place`` and ``religion``. A label that does not apply is missing.
    ``his/her`` in a template becomes the pronoun for the gender of the preceding word.

    A model that reads ``[MASK]`` in place of a name cannot distinguish between the people named:
    with ``mask``, prompts of a template that differ only in masked words have the same text, but
    keep the labels of their words. ``neutral`` adds such prompts as a reference.

    The packaged set ``restaurants`` has 18 sentences of each of the kinds ``names``,
    ``sexual_orientation`` and ``location``: 3,834 prompts (``recbias show restaurants``). A file
    has one of three formats:

    - **your own YAML**: ``words:`` contains the words of each slot, in groups with labels
      (``name: [{gender: female, words: [Ann]}]``), ``templates:`` the sentences of each kind, with
      slots as ``[name]`` or ``{name}``. You choose the labels; in a kind with several slots their
      names begin with the slot (``first_gender``). Repeated words are used once.
    - **the YAML of the LMRec paper**, with ``templates:`` and ``substitutions:``.
    - **the LMRec authors' JSON**: ``templates/yelp_templates.json``, with files of
      ``example_labels`` in ``words``, which select the kinds.

    Args:
        templates: The packaged set ``restaurants``, or a file.
        kinds: The kinds of sentences; null for all.
        words: For the authors' JSON: the files of words, named by kind (``names.json``).
        mask: Slots whose word is ``[MASK]`` in the text; ``his/her`` is then ``their``.
        neutral: Add each template once more with all its slots masked, or with these words
            (``{name: my friend}``). Such a prompt (``names-03:neutral``) has no word and no label
            of a word; the label ``neutral`` is 1 for these prompts and 0 for all others.
        control_samples: How many more times each neutral prompt is asked, as the control of
            ``identity_effect``: ``names-03:neutral:sample-1`` has the label ``sample`` 1.

    Raises:
        UnknownName: There is no such kind, or no such slot.
        BadYaml: The file is not YAML.
        MalformedLine: A slot has no words, a list is empty, a word has two values of one label, a
            template has no slot or occurs twice, and so on.
        WrongType: ``words`` is given with a YAML file.
        MissingFile: The authors' JSON is given without ``words``.
        Contradiction: ``neutral`` or ``sample`` is already the name of a slot or label, or there
            are control samples without neutral prompts.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended Bias in Language Model-driven
        Conversational Recommendation", 2022, Tables 5 to 7, and section 5 for ``mask``.

    >>> queries = Templates(kinds=("names",)).ask(None, None)
    >>> len(queries), queries.ids.ids[200], queries.texts[200]
    (1566, 'names-03:Brett', 'Where would you send Brett for lunch?')
    """

    templates: Literal["restaurants"] | InputFile = "restaurants"
    kinds: tuple[str, ...] | None = None
    words: tuple[InputFile, ...] = ()
    mask: tuple[str, ...] = ()
    neutral: bool | Mapping[str, str] = field(default=False, hash=False)
    control_samples: Annotated[int, Ge(0), Le(100)] = 0

    packaged = staticmethod(load_packaged)

    def __post_init__(self) -> None:
        """Refuse an invalid file, kind or slot before any data is read."""
        try:
            self._check_slots(self._select_kinds())
        except UserError as error:
            if error.where in {"kinds", "words", "mask", "neutral", "control_samples"}:
                raise
            raise error.locate_at("templates") from error

    def ask(self, dataset: Dataset | None, rng: np.random.Generator | None) -> Queries:
        """Return the prompts, template by template; the dataset is not used."""
        words = {} if self.neutral is True else self.neutral or None
        table = fill_templates(self._select_kinds(), masked=self.mask, neutral=words)
        table = add_samples(table, self.control_samples)
        refuse_equal_ids(table["id"].to_numpy(dtype=object), str(self.templates))
        return Queries.of_prompts(table)

    def _select_kinds(self) -> list[Kind]:
        if isinstance(self.templates, str):
            template_set = load_packaged()[self.templates]
        else:
            template_set = read_templates(self.templates, self.words)
        if self.kinds is None:
            return list(template_set.kinds)
        for name in self.kinds:
            if name not in template_set.names:
                remedy = suggest(name, template_set.names)
                raise UnknownName(f"there is no kind {name!r}", where="kinds", remedy=remedy)
        return [kind for kind in template_set.kinds if kind.name in self.kinds]

    def _check_slots(self, kinds: Collection[Kind]) -> None:
        """Refuse unknown slots, and a label or slot named like an added label."""
        slots = {slot for kind in kinds for slot in kind.words}
        used = {"mask": self.mask, "neutral": self.neutral if self.neutral is not True else ()}
        for setting, names in used.items():
            for slot in names or ():
                if slot not in slots:
                    remedy = suggest(slot, slots)
                    raise UnknownName(f"there is no slot {slot!r}", where=setting, remedy=remedy)
        if self.control_samples and not self.neutral:
            message = "there are no neutral prompts to sample again"
            raise Contradiction(message, where="control_samples", remedy="add neutral: true")
        added = {NEUTRAL: self.neutral, SAMPLE: self.control_samples}
        for name in (name for name, is_added in added.items() if is_added):
            if any(name in (*kind.words, *kind.labels) for kind in kinds):
                where = "neutral" if name == NEUTRAL else "control_samples"
                message = f"a slot or label is already named {name!r}"
                raise Contradiction(message, where=where, remedy="choose another name for it")


def read_templates(path: Path, words: Sequence[Path] = ()) -> TemplateSet:
    """Return the templates of a file; the errors are those of ``Templates``.

    A ``.json`` file is in the format of the LMRec authors, with files of ``words`` named by kind
    (``names.json``); a YAML file with ``substitutions`` is in that of their paper, and any other
    YAML file in the project's own.
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
