"""The LMRec authors' release: recommendations for sentences that differ in one word."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import numpy as np
import pandas as pd
from annotated_types import MinLen

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MissingEvidence, MissingFile
from recbias.core.input_files import has_file
from recbias.core.protocols import InputFile
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.data.datasets.dataset_folder import require_files
from recbias.data.datasets.lmrec_outputs import parse_kind, read_outputs
from recbias.data.datasets.lmrec_sentences import LABELS_OF_KIND, tabulate_sentences
from recbias.formats.text_files import require_file

NAME = "lmrec-release"
OUTPUTS = Path("data", "bias_analysis", "yelp", "output_dataframes")
TEXT, LIST, SEPARATOR = "text", "recommended", "\x1f"
"""The user columns of the sentence and of its list, and the separator of the items of a list."""

City: TypeAlias = Literal[
    "Atlanta", "Austin", "Boston", "Cambridge", "Columbus", "Orlando", "Portland", "Toronto"
]
SUFFIXES = {"5f": "_5f", "first": "", "neutralized": "_Neutralized"}


@dataclass(frozen=True, kw_only=True)
class LMRecRelease:
    """LMRec authors' release: what their model recommended in a city to each input sentence.

    Users are the input sentences, named like the prompts of ``templates``
    (``names-01:Allison``), with their text and labels. Items are the businesses, with ``name``,
    ``price`` (``$`` to ``$$$$``), ``price_level`` (1 to 4), ``categories`` (``A|B``) and
    ``stars``. There are no interactions. Use ``queries: lmrec-release`` and evaluate the authors'
    lists with the model ``lmrec_lists``. For several cities, name one dataset for each city.

    The identifier of an item is its name. A number is added (``Bell Street Burritos (2)``) only
    if several businesses share the name: they differ in stars, price or categories, or are in one
    list. A sentence has one row in the files for each label; here it is one query with all its
    labels. A repeated list counts once.

    Args:
        city: The city of the outputs.
        kinds: The kinds of sentences: ``names``, ``relationships``, ``pairrelationships``,
            ``age``, ``occupations``, ``additionalOccupations`` and others, as the files are named.
        outputs: The version of the outputs: ``5f`` for the last version, ``first`` for the first,
            ``neutralized`` for neutralized test sentences.
        missing: ``error`` to stop at a kind without a file (``.csv``, else ``.xlsx``); ``skip`` to
            read the others and name it in a warning, and to skip the city if it has none of them.
        path: A file ``yelp_qa_<kind>.csv`` in another folder; ``city``, ``kinds`` and ``outputs``
            are then ignored.
        folder: The folder below the data folder.

    Raises:
        MissingFile: A file is missing; ``recbias data fetch lmrec-release`` downloads it.
        UnknownColumn: A file lacks a column.
        MalformedLine: A price is not a level, a rank is missing, or a sentence has two lists.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended Bias in Language Model-driven
        Conversational Recommendation", 2022; github.com/TinaBBB/Unintended-Bias-LMRec.
    """

    city: City = "Boston"
    kinds: Annotated[tuple[str, ...], MinLen(1)] = ("names",)
    outputs: Literal["5f", "first", "neutralized"] = "5f"
    missing: Literal["error", "skip"] = "error"
    path: InputFile | None = None
    folder: str = NAME

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return frozenset({"users", "items"})

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        if self.path is not None:
            return [require_file(self.path)]
        outputs = data / self.folder / OUTPUTS
        if not outputs.is_dir():
            require_files([outputs / f"yelp_qa_{self.kinds[0]}.csv"], fetch=NAME)
        folder = outputs / f"{self.city}_output_dataframes{SUFFIXES[self.outputs]}"
        paths = {kind: _find_output(folder, kind) for kind in dict.fromkeys(self.kinds)}
        present = [path for path in paths.values() if has_file(path)]
        if len(present) == len(paths) or (present and self.missing == "skip"):
            return present
        raise _explain_absence(*next(item for item in paths.items() if item[1] not in present))

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        paths = self.files(data)
        absent = self._warn_of_absence(paths[0].parent) if self.path is None else []
        outputs = read_outputs(paths)
        sentences = tabulate_sentences(outputs.rows)
        ids = Vocabulary(sentences.pop("id").to_numpy(dtype=object).copy())
        items = outputs.items.ids
        names = pd.Series(items.ids[outputs.lists["item"].to_numpy()])
        lists = names.groupby(outputs.lists["input_sentence"].to_numpy()).agg(SEPARATOR.join)
        sentences[LIST] = sentences[TEXT].map(lists)
        unknown = {label for kind in absent for label in LABELS_OF_KIND.get(kind, ())}
        sentences[sorted(unknown - set(sentences.columns))] = None
        empty = np.empty(0, dtype=np.int32)
        rows = Interactions(empty, empty.copy(), np.empty(0, dtype=np.float32), None, ids, items)
        return Dataset(rows, Attributes(ids, sentences, "user"), outputs.items)

    def _warn_of_absence(self, folder: Path) -> list[str]:
        """Return the kinds without a file, and name them in a warning."""
        kinds = dict.fromkeys(self.kinds)
        paths = {kind: _find_output(folder, kind) for kind in kinds}
        absent = [kind for kind in kinds if not has_file(paths[kind])]
        if absent:
            errors = [_explain_absence(kind, paths[kind]) for kind in absent]
            reasons = "; ".join(f"{error.message}: {error.remedy}" for error in errors)
            warn(f"{self.city}: {len(absent)} of {len(kinds)} kinds skipped: {reasons}")
        return absent


def _find_output(folder: Path, kind: str) -> Path:
    """Return the CSV file of a kind, or the Excel file if there is no other."""
    path = folder / f"yelp_qa_{kind}.csv"
    excel = path.with_suffix(".xlsx")
    return excel if has_file(excel) and not has_file(path) else path


def _explain_absence(kind: str, path: Path) -> MissingFile:
    """Return the error that there is no file of a kind."""
    folder = path.parent
    message = f"there are no outputs of the kind {kind!r}"
    if folder.is_dir():
        remedy = suggest(kind, [parse_kind(file) for file in folder.glob("yelp_qa_*.*")])
    else:
        message = f"there are no such outputs of {folder.name.partition('_')[0]}"
        present = [path.name for path in folder.parent.iterdir()]
        remedy = suggest(folder.name, present) if present else f"recbias data fetch {NAME}"
    return MissingFile(message, where=str(path), remedy=remedy)


@dataclass(frozen=True, kw_only=True)
class LMRecSentences:
    """Use each input sentence of the dataset ``lmrec-release`` as one query.

    Labels are those of ``templates``: ``kind``, ``template``, the words (``name``; ``first`` and
    ``second``; ``location``; ``word`` for other kinds), and ``race``, ``gender``;
    ``first_gender``, ``second_gender``, ``orientation``; ``place``, ``religion``; ``age``. The
    template of a sentence is its text without these words; templates are numbered in the order of
    the file.

    Raises:
        MissingEvidence: The dataset is not ``lmrec-release``.
    """

    def ask(self, dataset: Dataset, rng: np.random.Generator) -> Queries:
        """Return a query for each sentence, in the order of the files."""
        users = dataset.users
        if users is None or not {TEXT, LIST} <= set(users.names):
            remedy = f"use the dataset {NAME}, or choose other queries"
            raise MissingEvidence("the dataset has no input sentences", remedy=remedy)
        texts = users.frame[TEXT].to_numpy(dtype=object)
        labels = Attributes(users.ids, users.frame.drop(columns=[TEXT, LIST]), "query")
        no_users = np.full(len(users.ids), -1, dtype=np.int32)
        return Queries(users.ids, labels, no_users, texts, "prompt")
