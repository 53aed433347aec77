"""Arrays of numbers in a namespace, larger than memory, read page by page through a cache."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bamquery import _native
from bamquery.closeable import Closeable
from bamquery.driver.controller import Controller

TIMEOUT: Final = 30.0
"""Seconds that an access may take, unless it is said otherwise."""
_CHUNK: Final = 1 << 16
"""Elements of one native call: between calls, Ctrl-C is heard."""
_KINDS: Final = "iuf"
_SIZES: Final = (1, 2, 4, 8)


class PageCache:
    """A fixed number of pages in memory, shared by all arrays that are made over it.

    The controllers' rings are fresh, and are this cache's alone. Threads may use it at the same time.
    """

    def __init__(
        self, controllers: Controller | Sequence[Controller], *, pages: int, page_bytes: int = 4096
    ) -> None:
        """Take memory for `pages` pages of `page_bytes`: a power of two, not above the queue pairs' slots.

        Args:
            controllers: one, or several, whose places here are the numbers of their drives; up to 256. Their
                blocks may differ in size.
            pages: at least one.
            page_bytes: at least a block.

        Raises:
            ValueError: such pages do not fit a controller's queue pairs, or there are no shared ones.
        """
        several = (controllers,) if isinstance(controllers, Controller) else tuple(controllers)
        self.controllers: Final = several
        self.page_bytes = page_bytes
        self.native = _native.CpuPageCache(
            tuple((one.memory, one.native) for one in several), page_count=pages, page_bytes=page_bytes
        )

    def flush(self, timeout: float = TIMEOUT) -> None:
        """Write back all pages that are dirty. NvmeError: a page that could not be; it stays dirty."""
        self.native.flush(timeout)

    def statistics(self) -> dict[str, int]:
        """Hits, misses, coalesced misses, evictions, write-backs and failures since the beginning."""
        return self.native.statistics()


@dataclass(frozen=True)
class Striped:
    """Namespaces as one address space: stripe s is the (s // n)th of namespace s % n.

    It ends with the last stripe that the smallest of them has whole.

    Attributes:
        members: of each the drive, as the cache numbers its controllers, and the nsid; any order.
        stripe_bytes: a power of two pages of the cache, so that no page is split.
    """

    members: Sequence[tuple[int, int]]
    stripe_bytes: int = 64 << 10


class Array(Closeable):
    """`count` numbers from byte `offset` of a namespace on, or of several that are striped.

    Threads may read and write at the same time: an element is never torn, and elements are in no order with
    each other. Writes reach the namespace when their page makes room for another, and at the latest by
    flush() or close(). Every access raises IndexError for what is not there, and NvmeError for what the
    controller answered.

    Compiled code takes an Array as an argument: `array[i]`, `array[i] = value` and `len(array)` work inside
    `@numba.njit`, with the same errors.
    """

    def __init__(
        self,
        cache: PageCache,
        nsid: int | Striped,
        dtype: npt.DTypeLike,
        count: int,
        *,
        offset: int = 0,
        writable: bool = False,
        timeout: float = TIMEOUT,
    ) -> None:
        """Make an array over what the namespace has.

        Args:
            cache: through which pages come.
            nsid: the namespace, of the cache's first controller; or several as one.
            dtype: an integer or floating-point number of 8 to 64 bits.
            count: of elements.
            offset: of the first byte; a multiple of the element's size.
            writable: whether elements may be assigned.
            timeout: seconds for one access.

        Raises:
            ValueError: the elements do not lie within the namespaces, or are no such numbers.
        """
        self.dtype: Final = element_type(dtype)
        self.cache: Final = cache
        self._count = count
        self._timeout = timeout
        self._writable = writable
        place = nsid if isinstance(nsid, Striped) else Striped([(0, nsid)])
        self._native: _native.CpuArray | None = _native.CpuArray(
            cache.native,
            members=list(place.members),
            stripe_bytes=place.stripe_bytes,
            offset=offset,
            count=count,
            element_bytes=self.dtype.itemsize,
            writable=writable,
            timeout=timeout,
        )

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int | slice) -> Any:
        """An element, or a slice's elements as a new numpy array."""
        if not isinstance(index, slice):
            return self.gather([operator.index(index)])[0]
        start, stop, step = index.indices(self._count)
        if step != 1:
            return self.gather(np.arange(start, stop, step))
        out = np.empty(max(stop - start, 0), self.dtype)
        for at in range(0, len(out), _CHUNK):
            self._open().read(start + at, out[at : at + _CHUNK])
        return out

    def __setitem__(self, index: int | slice, value: npt.ArrayLike) -> None:
        """Assign an element, or all elements of a slice."""
        if not isinstance(index, slice):
            self.scatter([operator.index(index)], value)
            return
        start, stop, step = index.indices(self._count)
        if step != 1:
            self.scatter(np.arange(start, stop, step), value)
            return
        values = self._values(value, max(stop - start, 0))
        for at in range(0, len(values), _CHUNK):
            self._open().write(start + at, values[at : at + _CHUNK])

    def gather(self, indices: npt.ArrayLike) -> npt.NDArray[Any]:
        """The elements at any indices, in their order; negative ones count from the end."""
        places = self._places(indices)
        out = np.empty(len(places), self.dtype)
        for at in range(0, len(places), _CHUNK):
            self._open().gather(places[at : at + _CHUNK], out[at : at + _CHUNK])
        return out

    def scatter(self, indices: npt.ArrayLike, values: npt.ArrayLike) -> None:
        """Assign elements at any indices; of those that are there twice, the last value stays."""
        places = self._places(indices)
        given = self._values(values, len(places))
        for at in range(0, len(places), _CHUNK):
            self._open().scatter(places[at : at + _CHUNK], given[at : at + _CHUNK])

    def flush(self) -> None:
        """Write back all dirty pages of the cache, and make them durable in these namespaces.

        What one drive refuses does not keep the others from it.
        """
        self._open().flush(self._timeout)

    def statistics(self) -> dict[str, int]:
        """What the cache did, for all its arrays."""
        return self.cache.statistics()

    def close(self) -> None:
        """Flush, if elements could be written; later accesses raise ValueError."""
        if self._native is not None and self._writable:
            self.flush()
        self._native = None

    @property
    def address(self) -> int:
        """For compiled code, which must not outlive the array."""
        return self._open().address

    @property
    def _numba_type_(self) -> Any:
        """How numba asks what type a value has."""
        from bamquery.driver.numba_array import array_type  # noqa: PLC0415 (numba is optional)

        return array_type(self.dtype)

    def _open(self) -> _native.CpuArray:
        if self._native is None:
            raise ValueError("the array is closed")
        return self._native

    def _places(self, indices: npt.ArrayLike) -> npt.NDArray[np.int64]:
        given = np.asarray(indices)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise IndexError("indices are one-dimensional, of integers")
        if given.dtype.kind == "u" and given.size and given.max() >= self._count:
            raise IndexError(f"index {given.max()} is out of bounds for {self._count} elements")
        places = given.astype(np.int64)
        places[places < 0] += self._count
        return places

    def _values(self, values: npt.ArrayLike, count: int) -> npt.NDArray[Any]:
        return np.ascontiguousarray(np.broadcast_to(np.asarray(values, self.dtype), (count,)))


def element_type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The dtype, if arrays can have it. ValueError otherwise."""
    found = np.dtype(dtype)
    if found.kind not in _KINDS or found.itemsize not in _SIZES or not found.isnative or found == np.float16:
        raise ValueError(f"arrays are of integers and floats of 8 to 64 bits, not of {found}")
    return found
