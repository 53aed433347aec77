"""What is closed by hand or by leaving `with`: one `__enter__` and `__exit__` for all of them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self


class Closeable:
    """A context manager that is closed when its block is left, by an exception too."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Give back what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
