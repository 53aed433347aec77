// An array in a namespace, for threads of this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "driver/core/array/array.hpp"
#include "driver/native/page_cache/cpu_page_cache.hpp"

namespace bamquery {

/// Where an array's bytes are.
struct ArrayPlace {
  /// One namespace, or several as one address space: stripes of them in turn.
  std::vector<StripeMember> members;
  std::uint64_t stripe_bytes = 0;  ///< Of several: a power of two pages.
  std::uint64_t offset = 0;        ///< Of the first byte.
};

/// log2 of the pages of a stripe. std::invalid_argument: it is not of a power of two pages.
std::uint32_t stripe_shift(std::uint64_t stripe_bytes, std::uint32_t page_bytes);

/// Bytes of the address space that so many namespaces make, of which the smallest has `least`.
/// std::invalid_argument: as stripe_shift(), where there are several.
std::uint64_t striped_bytes(std::uint64_t least, std::size_t members, std::uint64_t stripe_bytes,
                            std::uint32_t page_bytes);

/// Elements of 1, 2, 4 or 8 bytes, as bytes: what they mean is the caller's. Any number of threads may call;
/// elements are never torn. Calls throw std::out_of_range for an index that is not there, NvmeError for what
/// the controller answered, and, where the array takes no writes, for those.
class CpuArray {
 public:
  /// Throws std::invalid_argument where the elements do not lie within the namespaces, or not on multiples of
  /// their size.
  CpuArray(std::shared_ptr<CpuPageCache> cache, ArrayPlace place, std::uint64_t count,
           std::uint32_t element_bytes, bool writable, std::uint64_t timeout_ns);

  std::uint64_t count() const { return view_.count; }
  std::uint32_t element_bytes() const { return element_bytes_; }
  const ArrayView& view() const { return view_; }
  CpuPageCache& cache() const { return *cache_; }

  /// Element by element, in any order. Negative indices are not there.
  void gather(std::span<const std::int64_t> indices, std::span<std::byte> out) const;
  void scatter(std::span<const std::int64_t> indices, std::span<const std::byte> values) const;

  /// Elements `first` on, page by page.
  void read(std::uint64_t first, std::span<std::byte> out) const;
  void write(std::uint64_t first, std::span<const std::byte> values) const;

  /// Writes back all that is dirty in the cache, and makes it durable in the array's namespaces.
  void flush(Deadline deadline) const;

 private:
  template <typename Word>
  void gather_words(std::span<const std::int64_t> indices, Word* out) const;
  template <typename Word>
  void scatter_words(std::span<const std::int64_t> indices, const Word* values) const;
  template <Access kAccess, typename Move>
  void move(std::uint64_t first, std::uint64_t count, Move move_element) const;
  [[noreturn]] void fail(const ErrorRecord& errors, Status status) const;

  std::shared_ptr<CpuPageCache> cache_;
  std::vector<StripeMember> members_;  ///< Which view_ may point to.
  ArrayView view_{};                   ///< Without an error record: each call has its own.
  std::uint32_t element_bytes_;
};

/// Where compiled code finds the functions for one element: see numba_array.py. Both take the address of a
/// CpuArray and an index, which counts from the end where it is negative. Elements are the low bits of 64.
struct ArrayFunctions {
  std::uint64_t read;    ///< Returns the element; 0 where that fails.
  std::uint64_t write;   ///< Takes it as a third argument.
  std::uint64_t failed;  ///< How this thread's last call ended: Status::code. No arguments.
  std::uint64_t nsid;    ///< Where, if it failed. No arguments.
  std::uint64_t lba;     ///< The same.
  std::uint64_t drive;   ///< The same, of several; -1 where there is one. Returns 32 bits with a sign.
};
ArrayFunctions array_functions(std::uint32_t element_bytes);

}  // namespace bamquery
