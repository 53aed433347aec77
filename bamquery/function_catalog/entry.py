"""An entry of the catalog: all that is said of a function, but for what computes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from bamquery.function_catalog.contract import FunctionContract
from bamquery.function_catalog.signature import Signature, read_signature

FunctionKind: TypeAlias = Literal["scalar", "aggregate", "window", "table"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One function, or several that differ in their names only.

    Attributes:
        names: the first is the one that the others are other names of; with spaces between.
        signatures: `(x NUMERIC [, digits INTEGER]) -> NUMERIC`, with ` | ` between several. Beside SQL's
            types there are ANY, NUMERIC (any number), INTEGRAL (any integer) and TEMPORAL (any date or time);
            `...` is any number of arguments more. How many arguments a call may have is read from them, and
            from one of plain types how it is bound.
        description: one line.
        contract: what devices owe of the first of `calls`; None where there is no more to say of one of its
            own name, and where it is another entry's or one of `operators`.
        calls: the functions of plans that it becomes, with spaces between, the one that is most of it first;
            None for that of its own name.
        example: a call that can be run as it stands; empty where the signature says enough.
        call: how it is written where that is no plain call.
    """

    names: str
    signatures: str
    description: str
    contract: FunctionContract | None = None
    calls: str | None = field(default=None, kw_only=True)
    example: str = field(default="", kw_only=True)
    call: str = field(default="", kw_only=True)

    @property
    def all_names(self) -> Sequence[str]:
        """Its names, one by one."""
        return self.names.split()

    @property
    def name(self) -> str:
        """The first of its names."""
        return self.all_names[0]

    @property
    def plan_functions(self) -> tuple[str, ...]:
        """Names of the functions of plans that it becomes."""
        return (self.name,) if self.calls is None else tuple(self.calls.split())

    def parsed_signatures(self) -> tuple[Signature, ...]:
        """The ways to call it."""
        return tuple(read_signature(text) for text in self.signatures.split(" | "))


@dataclass(frozen=True, slots=True)
class Section:
    """Entries under a title of the page; `notes` follow them there, in Markdown."""

    title: str
    kind: FunctionKind
    entries: tuple[Entry, ...]
    notes: str = ""
