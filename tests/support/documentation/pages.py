"""Runs the fenced blocks of a page in order, in a folder of its own."""

from __future__ import annotations

import ast
import contextlib
import csv
import doctest
import io
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from recbias import api
from support.commands import invoke_recbias
from support.documentation.blocks import Block
from support.documentation.output import compare_output
from support.documentation.shell import (
    PARSED_ONLY,
    SHELLS,
    Command,
    check_options,
    find_recbias,
    split_commands,
)

ROOT = Path(__file__).parents[3]
DEFAULT_KEYS = {
    "name": "name: fragment",
    "dataset": "dataset: demo",
    "models": "models: [MostPop]",
}
"""Lines that make a spec of a fragment that lacks them."""

FILE_NAME = re.compile(
    r"(?!\w+://)[\w./=-]+\.(?:csv|tsv|gz|npy|txt|trec|run|parquet|inter|qrels|jsonl?)"
)
FILE_SETTINGS = {"path", "paths", "interactions", "items", "users", "train", "test"} | {
    *("user_ids", "item_ids", "direction", "vectors", "ratings")
}
MESSAGES = ("error:", "help:", "warning:", "note:", "out of tolerance:")
"""How a line on stderr starts that is no progress."""
STARTED = {"cat", "head", "ls", "cp", "mv", "mkdir", "rm", "touch", "echo", "wc"}
"""Programs that are run as they are."""


class BrokenPage(AssertionError):
    """A block of a page does not do what the page says."""


@dataclass
class PageRun:
    """The state of a page while its blocks run.

    Args:
        name: The page.
        folder: The working folder.
        data: The folder of real datasets.
        corrections: Receives the real output where a text shows another, by line; without it
            such a text is an error.
    """

    name: str
    folder: Path
    data: Path | None = None
    corrections: dict[int, str] | None = None
    out: str = ""
    err: str = ""
    module: ModuleType = field(default_factory=lambda: ModuleType("page"))
    variables: dict[str, str] = field(default_factory=dict)

    def run(self, blocks: list[Block]) -> None:
        """Run or check every block; BrokenPage with the line of the first that fails."""
        for block, following in zip(blocks, [*blocks[1:], None], strict=True):
            try:
                self.run_block(block, following)
            except Exception as error:
                message = f"{self.name}:{block.line}: {type(error).__name__}: {error}"
                raise BrokenPage(message) from error

    def run_block(self, block: Block, following: Block | None) -> None:
        """Run or check one block; ``following`` holds its output if it is a text."""
        if block.language not in {*SHELLS, *CHECKS, "text", "python"}:
            message = f"no rule for a block of language {block.language!r}"
            raise ValueError(message)
        if block.title:
            self._write(block)
        elif block.language == "text":
            self._compare(block)
        else:
            self.out = self.err = ""
            if block.language in SHELLS:
                commands = list(split_commands(block.text, block.line))
                for command in commands:
                    code = block.code if command is commands[-1] else 0
                    self._run_command(command, block, following, command.code or code)
            elif block.language == "python":
                self._run_python(block, following)
            elif block.language == "yaml" and not block.reason:
                self._read_fragment(block)
            else:
                CHECKS[block.language](block.text)

    def _write(self, block: Block) -> None:
        """Write the file of a block; ``title="NAME, continued"`` adds to it."""
        if block.language in CHECKS:
            CHECKS[block.language](block.text)
        elif block.language == "python":
            ast.parse(block.text)
        elif block.language in SHELLS:
            subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)
            for command in split_commands(_drop_control_words(block.text), block.line):
                arguments = find_recbias(command)
                if arguments is not None:
                    check_options(arguments, self.folder)
        name, _, continued = block.title.partition(", ")
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if continued else "w", encoding="utf-8") as file:
            file.write(block.text)

    def _compare(self, block: Block) -> None:
        if block.reason:
            return
        messages = [line for line in self.err.splitlines() if line.strip().startswith(MESSAGES)]
        printed = [self.out, self.err, "\n".join(messages), self.out + self.err]
        differences = [compare_output(block.text, text) for text in printed if text]
        assert differences, "no block that prints something is before this text"
        if "" in differences:
            return
        if self.corrections is None:
            message = f"the output differs:\n{differences[0]}"
            raise AssertionError(message)
        self.corrections[block.line] = self.out or self.err

    def _run_command(
        self, command: Command, block: Block, following: Block | None, code: int
    ) -> None:
        arguments = find_recbias(command)
        program = command.words[0] if command.words else ""
        if arguments is not None:
            check_options(arguments, self.folder)
        if not program:
            self.variables |= command.variables
        elif block.reason or program in PARSED_ONLY:
            known = {"recbias", "python", "python3", "pytest", "cd", "export"}
            assert program in PARSED_ONLY | STARTED | known, f"no rule for {program}"
        elif program == "cd":
            self.folder /= command.words[1]
        elif program == "export":
            self.variables |= dict(word.split("=", 1) for word in command.words[1:])
        elif _needs_network(arguments):
            pass
        else:
            shows_error = following and following.text.startswith("error:")
            self._start(command, arguments, code or (2 if shows_error else 0))

    def _start(self, command: Command, arguments: list[str] | None, code: int) -> None:
        env = {**self.variables, **command.variables}
        if self.data is not None:
            env.setdefault("RECBIAS_DATA", str(self.data))
        if arguments is not None:
            result = invoke_recbias(*arguments, folder=self.folder, env=env)
            printed, reported, status = result.out, result.err, result.code
        else:
            words = list(command.words)
            if words[0] == "pytest":
                words = ["python", "-m", *words, "-p", "no:cacheprovider"]
            if words[0].startswith("python"):
                words[0] = sys.executable
            elif words[0] not in STARTED:
                message = f"no rule for {words[0]}"
                raise ValueError(message)
            process = subprocess.run(
                words, cwd=self.folder, env={**os.environ, **env}, capture_output=True, text=True
            )
            printed, reported, status = process.stdout, process.stderr, process.returncode
        message = f"{command.text} exits with {status} instead of {code}:\n{printed}{reported}"
        assert status == code, message
        if command.target:
            (self.folder / command.target).write_text(printed, encoding="utf-8")
            printed = ""
        self.out += printed
        self.err += reported

    def _run_python(self, block: Block, following: Block | None) -> None:
        if block.text.lstrip().startswith(">>>"):
            self._run_examples(block)
            return
        tree = ast.parse("\n" * (block.line - 1) + block.text)
        if block.reason:
            return
        last = tree.body[-1]
        shows_value = following is not None and following.language == "text"
        with self._enter() as printed:
            if shows_value and isinstance(last, ast.Expr):
                tree.body.pop()
                exec(compile(tree, self.name, "exec"), vars(self.module))
                value = eval(
                    compile(ast.Expression(last.value), self.name, "eval"), vars(self.module)
                )
                if value is not None:
                    print(repr(value))
            else:
                exec(compile(tree, self.name, "exec"), vars(self.module))
        self.out = printed.getvalue()

    def _run_examples(self, block: Block) -> None:
        parser, report = doctest.DocTestParser(), io.StringIO()
        examples = parser.get_doctest(
            block.text, vars(self.module), self.name, self.name, block.line
        )
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        with self._enter():
            runner.run(examples, out=report.write, clear_globs=False)
        vars(self.module).update(examples.globs)
        assert not runner.failures, report.getvalue()

    @contextlib.contextmanager
    def _enter(self) -> Iterator[io.StringIO]:
        """Work in the folder of the page, with its files importable and what is printed kept."""
        printed = io.StringIO()
        modules, path = set(sys.modules), [*sys.path]
        env = {"RECBIAS_DATA": str(self.data)} if self.data else {}
        before = {name: os.environ.get(name) for name in env}
        os.environ.update(env)
        sys.path.insert(0, str(self.folder))
        sys.modules["page"] = self.module
        try:
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
                yield printed
        finally:
            sys.path[:] = path
            del sys.modules["page"]
            for name in set(sys.modules) - modules:
                file = getattr(sys.modules[name], "__file__", None) or ""
                if file.startswith(str(self.folder)):
                    del sys.modules[name]
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})

    def _read_fragment(self, block: Block) -> None:
        """Read a part of a spec as the command reads it, with the keys that it lacks."""
        content = yaml.safe_load(block.text)
        assert isinstance(content, dict), "not a mapping: give it a title or a key"
        lines = [line for key, line in DEFAULT_KEYS.items() if key not in content]
        spec = self.folder / f"fragment-{block.line}.yaml"
        spec.write_text(block.text + "\n".join([*lines, ""]), encoding="utf-8")
        absent = {
            path for name in _find_files(content) if not (path := self.folder / name).exists()
        }
        for path in absent:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        try:
            if {"name", "dataset", "models"} <= set(content) and not absent and self.data:
                api.plan(spec, out=self.folder / "results", data=self.data)
            else:
                api.read_experiment(spec)
        finally:
            for path in absent:
                path.unlink()


def prepare_folder(folder: Path, store: Path | None = None) -> Path:
    """Return a folder with what a clone has beside the page: ``configs``, and a store."""
    (folder / "configs").symlink_to(ROOT / "configs")
    (folder / "results").mkdir()
    if store is not None:
        (folder / "results" / "store").symlink_to(store)
    return folder


def _find_files(content: Any) -> Iterator[str]:
    """Yield the names of the tables, arrays and lists that a spec reads."""
    if isinstance(content, dict):
        for key, value in content.items():
            if key in FILE_SETTINGS and isinstance(value, str) and FILE_NAME.fullmatch(value):
                yield value
            yield from _find_files(value)
    elif isinstance(content, list):
        for value in content:
            yield from _find_files(value)


def _needs_network(arguments: list[str] | None) -> bool:
    return arguments is not None and arguments[:2] == ["data", "fetch"]


def _drop_control_words(script: str) -> str:
    """Return the commands of a script without its comments and control structure."""
    lines = (line.strip() for line in script.replace("\\\n", " ").splitlines())
    words = {"if", "then", "else", "fi", "for", "do", "done", "while", "case", "esac"}
    kept = (line for line in lines if line and line[0] != "#")
    return "\n".join(" ".join(_strip_words(line, words)) for line in kept)


def _strip_words(line: str, words: set[str]) -> list[str]:
    first, _, rest = line.partition(" ")
    return _strip_words(rest, words) if first in words and rest else [line]


def _check_csv(text: str) -> None:
    rows = list(csv.reader(io.StringIO(text)))
    widths = {len(row) for row in rows}
    assert len(widths) == 1, f"rows of {sorted(widths)} cells"


CHECKS: dict[str, Callable[[str], Any]] = {
    "csv": _check_csv,
    "json": json.loads,
    "toml": tomllib.loads,
    "tsv": str.splitlines,
    "yaml": yaml.safe_load,
    "ini": str.splitlines,
}
"""What is checked of a block that is a file, or that is not run."""
