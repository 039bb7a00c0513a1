"""The code of a module in memory, compared with that of its source."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

_CONSTANTS = (str, bytes, int, float, complex, bool, tuple, frozenset, type(None))
"""Types of constants that a module does not change in place."""


def compile_source(path: Path) -> CodeType | None:
    """Return the code of a source as Python compiles it; None if it cannot."""
    with suppress(SyntaxError, ValueError, OSError):
        return SourceFileLoader(path.stem, str(path)).source_to_code(path.read_bytes(), str(path))
    return None


def drop_lines(code: CodeType) -> CodeType:
    """Return code without the numbers of its lines."""
    constants = tuple(
        drop_lines(each) if isinstance(each, CodeType) else each for each in code.co_consts
    )
    return code.replace(co_firstlineno=1, co_linetable=b"", co_consts=constants)


def has_code_of_source(module: ModuleType, path: Path) -> bool:
    """Return whether a module in memory can be what Python makes of its source.

    Each function of the module, of its classes too, has to be in the source; each function and
    class of the source in the module; and constants that the source assigns once have to have
    their values. A statement that leaves none of these cannot be compared.
    """
    compiled = compile_source(path)
    if compiled is None:
        return False
    of_source = {drop_lines(code) for code in _iterate_codes(compiled)}
    loaded = {drop_lines(code) for code in _find_codes(module, str(path))}
    if not loaded <= of_source:
        return False
    tree = ast.parse(path.read_bytes())
    changeable = _list_changeable(tree)
    return "*" in changeable or _has_members(vars(module), tree.body, changeable)


def _has_members(
    members: Mapping[str, object], body: Sequence[ast.stmt], changeable: set[str]
) -> bool:
    """Return whether a module, or a class, has the functions, classes and constants of its body.

    A class may have another thing in the place of a constant, as that of an enumeration has, and
    a constant may have been removed by ``globals()``.
    """
    is_class = "__module__" in members
    for statement in body:
        if isinstance(statement, _DEFINITIONS) and statement.name not in changeable:
            if statement.name not in members and not statement.name.startswith("__"):
                return False
            member = members.get(statement.name)
            is_own = isinstance(member, type) and member.__name__ == statement.name
            if not is_own or not isinstance(statement, ast.ClassDef):
                continue
            if not _has_members(vars(member), statement.body, changeable):
                return False
    return all(
        _is_equal(members[name], expected) or (is_class and type(members[name]) not in _CONSTANTS)
        for name, expected in _iterate_constants(body)
        if name not in changeable and name in members
    )


def _iterate_codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _iterate_codes(each)


def _find_codes(module: ModuleType, file: str) -> Iterator[CodeType]:
    """Yield the code of the functions of a module, and of its classes, that are from a file.

    Functions inside others are parts of their code.
    """
    namespaces, seen = [vars(module)], set[int]()
    while namespaces:
        for member in list(namespaces.pop().values()):
            if isinstance(member, type):
                if member.__module__ == module.__name__ and id(member) not in seen:
                    seen.add(id(member))
                    namespaces.append(dict(vars(member)))
                continue
            for function in _list_functions(member):
                if function.__code__.co_filename == file:
                    yield function.__code__


def _list_functions(member: object) -> list[FunctionType]:
    """Return the functions of a member of a module or class, of which no attribute is computed."""
    candidates = [member]
    if isinstance(member, property):
        candidates = [member.fget, member.fset, member.fdel]
    elif isinstance(member, staticmethod | classmethod):
        candidates = [member.__func__]
    else:
        with suppress(Exception):
            candidates.append(object.__getattribute__(member, "__wrapped__"))
    return [each for each in candidates if isinstance(each, FunctionType)]


def _list_changeable(tree: ast.Module) -> set[str]:
    """Return the names that a module may delete, or assign in another way than by a statement."""
    names: list[str | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            names += node.names
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
            names.append(node.id)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            names.append(node.name)
        elif isinstance(node, ast.alias):
            names.append(node.asname or node.name.partition(".")[0])
    return set(filter(None, names))


def _iterate_constants(body: Sequence[ast.stmt]) -> Iterator[tuple[str, object]]:
    """Yield the names that a body assigns once, in a statement of its own, with constants."""
    counts = Counter(
        node.id if isinstance(node, ast.Name) else node.name
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, _DEFINITIONS)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    )
    for statement in body:
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        else:
            continue
        names = [
            each.id for each in targets if isinstance(each, ast.Name) and counts[each.id] == 1
        ]
        with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            value = ast.literal_eval(statement.value)  # type: ignore[arg-type]
            if isinstance(value, _CONSTANTS):
                yield from ((name, value) for name in names)


def _is_equal(value: object, expected: object) -> bool:
    """Return whether two constants are the same; 1 is not 1.0, and NaN is NaN."""
    return type(value) is type(expected) and repr(value) == repr(expected)
