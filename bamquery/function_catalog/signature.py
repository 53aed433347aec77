"""How a function is called: the signatures that entries write, as parameters and an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

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

    @property
    def least(self) -> int:
        """The fewest arguments."""
        return sum(not parameter.optional for parameter in self.parameters)

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


@cache
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
