"""The commands of a shell block, and the options of those of recbias."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import typer

from recbias import api
from recbias.cli.main import app, load_command
from recbias.config.source import list_specs, resolve_spec
from recbias.core.errors import UnknownName

SHELLS = {"sh", "bash", "console"}
PARSED_ONLY = {
    *("pip", "make", "git", "ssh", "scp", "rsync", "sbatch", "squeue", "scancel", "srun", "ray"),
    *("source", "curl", "docker", "ollama", "vllm", "llama-server", "nohup", "kill", "tail"),
    *("module", "nvidia-smi", "open", "jupyter", "crontab", "pkill", "disown", "wait", "kubectl"),
}
"""Programs that a page may name and that no test starts."""
_EXIT = re.compile(r"#.*\bexit(?:s|ed)?(?: with)?(?: code)? (\d+)")
_VARIABLE = re.compile(r"\$(?:\w+|\{[^}]*\})")
_OPERATORS = {"&&", "||", ";", "|", "&"}


@dataclass(frozen=True)
class Command:
    """One command of a block.

    Args:
        words: The program and its arguments.
        line: The number of its line in the page.
        code: The exit code that the comment of the line promises.
        target: The file that its output goes to, or nothing.
        variables: The variables set for it: ``NAME=value`` before the program.
    """

    words: tuple[str, ...]
    line: int
    code: int = 0
    target: str = ""
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return shlex.join(self.words)


def split_commands(text: str, first_line: int = 1) -> Iterator[Command]:
    """Yield the commands of a block; ValueError if a quote is not closed."""
    joined = ""
    for number, line in enumerate(text.splitlines(), first_line):
        joined += line.removeprefix("$ ").removesuffix("\\")
        if line.endswith("\\"):
            continue
        promised = _EXIT.search(joined)
        lexer = shlex.shlex(joined, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        joined, words = "", []
        for word in [*lexer, ";"]:
            if word not in _OPERATORS:
                words.append(word)
            elif words:
                yield _read_command(words, number, int(promised[1]) if promised else 0)
                words = []


def _read_command(words: list[str], line: int, code: int) -> Command:
    target, variables = "", {}
    while len(words) > 1 and any(word.startswith(">") for word in words):
        at = next(at for at, word in enumerate(words) if word.startswith(">"))
        is_numbered = words[at - 1] in {"1", "2"}
        target = target if words[at - 1] == "2" or words[at] == ">&" else words[at + 1]
        words = words[: at - is_numbered] + words[at + 2 :]
    while words and re.fullmatch(r"[A-Z_]\w*=.*", words[0]):
        name, _, value = words[0].partition("=")
        variables[name] = value
        words = words[1:]
    return Command(tuple(words), line, code, target, variables)


def find_recbias(command: Command) -> list[str] | None:
    """Return the arguments of ``recbias`` in a command, also after ``srun`` or ``nohup``."""
    words = list(command.words)
    if words[:3] in (["python", "-m", "recbias"], ["python3", "-m", "recbias"]):
        return words[3:]
    if "recbias" in words and words[0] in {"recbias", "srun", "nohup", "time", "exec"}:
        return words[words.index("recbias") + 1 :]
    return None


def check_options(arguments: list[str], folder: Path) -> None:
    """Parse the arguments of ``recbias`` as the command does, and read a packaged spec.

    Variables of the shell stand for the number 1. Raises the error of the command's parser, or
    UserError if the spec of ``run`` or ``plan`` is one of the repository and has a fault.
    """
    words = [_VARIABLE.sub("1", word) for word in arguments]
    command = typer.main.get_command(app)
    path = ""
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        name = words.pop(0)
        assert name in command.commands, f"recbias has no command {name}"
        path = f"{path} {name}".lstrip()
        command = load_command(path)
    if hasattr(command, "commands") or {"-h", "--help"} & set(words):
        return
    parameters = command.make_context("recbias", words).params
    for spec in parameters.get("specs", ()):
        if _is_ours(str(spec)):
            path = folder / spec
            api.read_experiment(path if path.exists() else spec, parameters["overrides"] or ())


def _is_ours(spec: str) -> bool:
    if spec.startswith("configs/"):
        return True
    try:
        return resolve_spec(spec) in list_specs()
    except UnknownName:
        assert spec.endswith((".yaml", ".yml", "1")), f"{spec} is no packaged spec"
        return False
