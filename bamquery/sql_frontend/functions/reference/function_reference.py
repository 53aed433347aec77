"""Every SQL function with its signatures and a line of what it does.

For completion, `duckdb_functions()` and docs/functions.md. Nothing is read before somebody asks.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from bamquery.sql_frontend.functions.reference.entry import GpuSupport, Section

FunctionKind: TypeAlias = Literal["scalar", "aggregate", "window", "table"]

_ROOMS: Final = (
    *("numbers", "strings", "times", "any_type", "session", "aggregates", "windows", "table_functions"),
)
_SIGNATURE: Final = re.compile(r"\((?P<parameters>.*)\) -> (?P<answer>.+)")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: a type of SQL, or ANY, NUMERIC, INTEGRAL or TEMPORAL for several."""

    name: str
    type: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """One way to call a function.

    Attributes:
        parameters: in order; those that may be left out are the last ones.
        return_type: of SQL, or as those of parameters; TABLE of what stands in FROM.
        repeated: whether the last parameter stands for any number of arguments.
    """

    parameters: tuple[Parameter, ...]
    return_type: str
    repeated: bool = False

    def text(self, name: str) -> str:
        """How to call it under that name: ``round(x NUMERIC [, digits INTEGER]) -> NUMERIC``."""
        typed = [f"{parameter.name} {parameter.type}" for parameter in self.parameters]
        return f"{name}({self._list_parameters(typed)}) -> {self.return_type}"

    def call(self, name: str) -> str:
        """The same without types: ``round(x [, digits])``."""
        return f"{name}({self._list_parameters([parameter.name for parameter in self.parameters])})"

    def _list_parameters(self, words: Sequence[str]) -> str:
        required = [w for w, p in zip(words, self.parameters, strict=True) if not p.optional]
        optional = words[len(required) :]
        listed = ", ".join([*required, *(["..."] if self.repeated else [])])
        for place, word in enumerate(optional):
            listed += f" [, {word}" if required or place else f"[{word}"
        return listed + "]" * len(optional)


@dataclass(frozen=True, slots=True)
class FunctionRecord:
    """A function under one of its names.

    Attributes:
        name: as it is called.
        kind: where it may stand.
        signatures: the ways to call it, at least one.
        description: one line.
        gpu: what of it runs on a GPU over columns.
        category: the part of the reference that it is in.
        alias_of: the function that it is another name of, or None.
        example: a call that runs as it stands, or nothing.
    """

    name: str
    kind: FunctionKind
    signatures: tuple[Signature, ...]
    description: str
    gpu: GpuSupport
    category: str
    alias_of: str | None = None
    example: str = ""

    @property
    def usages(self) -> tuple[str, ...]:
        """Every signature as text."""
        return tuple(signature.text(self.name) for signature in self.signatures)


@functools.cache
def functions() -> Sequence[FunctionRecord]:
    """All functions, section by section; those of several kinds (`first`) come once for each."""
    return tuple(record for section in sections() for record in _records(section))


@functools.cache
def _by_name() -> dict[str, tuple[FunctionRecord, ...]]:
    found: dict[str, tuple[FunctionRecord, ...]] = {}
    for record in functions():
        found[record.name] = (*found.get(record.name, ()), record)
    return found


def function_records(name: str) -> Sequence[FunctionRecord]:
    """The functions of that name (any case); none where there is none."""
    return _by_name().get(name.lower(), ())


def sections() -> Iterator[Section]:
    """The reference as it is written, section by section."""
    # By name, so that completion of keywords does not pay for this file's data.
    for room in _ROOMS:
        section: Section = importlib.import_module(
            f"bamquery.sql_frontend.functions.reference.{room}"
        ).SECTION
        yield section


def _records(section: Section) -> Iterator[FunctionRecord]:
    for entry in section.entries:
        signatures = tuple(read_signature(text) for text in entry.signatures.split(" | "))
        first, *_ = entry.names.split()
        for name in entry.names.split():
            yield FunctionRecord(
                name,
                section.kind,
                signatures,
                entry.description,
                entry.gpu,
                section.title,
                None if name == first else first,
                entry.example,
            )


def read_signature(text: str) -> Signature:
    """A signature as entries write it."""
    match = _SIGNATURE.fullmatch(text)
    assert match is not None, text
    inner = match["parameters"]
    repeated = inner.endswith(", ...")
    required, bracket, optional = inner.removesuffix(", ...").partition("[")
    parameters = [*_parameters(required, optional=False), *_parameters(bracket and optional, optional=True)]
    return Signature(tuple(parameters), match["answer"], repeated)


def _parameters(text: str, *, optional: bool) -> Iterator[Parameter]:
    for part in re.split(r"[\[\],]+", text):
        if part.strip():
            name, _, kind = part.strip().partition(" ")
            yield Parameter(name, kind, optional)
