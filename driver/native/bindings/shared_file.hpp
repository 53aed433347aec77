// Files as Python has them.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "driver/native/bindings/buffers.hpp"
#include "driver/native/errors.hpp"
#include "driver/native/files/block_file.hpp"

namespace bamquery {

using ChecksumArray = pybind11::array_t<std::uint32_t, pybind11::array::c_style | pybind11::array::forcecast>;

inline void require_room(const ByteView& target, std::int64_t bytes) {
  if (static_cast<std::int64_t>(target.bytes().size()) < bytes)
    throw pybind11::value_error("target is too small");
}

inline RangeItems range_items(const RowArray& offsets, const RowArray& lengths) {
  if (offsets.size() != lengths.size()) throw pybind11::value_error("as many lengths as offsets");
  return {as_span(offsets), as_span(lengths)};
}

/// A block file that can be closed while other threads read it: they finish first.
class SharedFile {
 public:
  SharedFile(std::shared_ptr<const BlockFile> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)), block_size_(file_->block_size()) {}

  std::int64_t block_size() const { return block_size_; }
  std::string io_path() const { return acquire()->io_path(); }

  std::shared_ptr<SoftwareController> controller() const { return acquire()->controller(); }

  /// The file, which stays open while it is used; StorageError where it has been closed.
  std::shared_ptr<const BlockFile> acquire() const {
    const std::lock_guard lock(mutex_);
    if (!file_) throw StorageError(path_, "the reader is closed");
    return file_;
  }

  /// Without Python's lock: to unmap what was read of a large file takes its time.
  void close() {
    const pybind11::gil_scoped_release unlocked;
    std::shared_ptr<const BlockFile> last;
    {
      const std::lock_guard lock(mutex_);
      last = std::exchange(file_, nullptr);
    }
  }

  pybind11::tuple read_ranges(const RowArray& offsets, const RowArray& lengths,
                              const pybind11::object& target,
                              const std::optional<ChecksumArray>& checksums) const {
    const RangeItems ranges = range_items(offsets, lengths);
    const ByteView to(target, true);
    std::int64_t bytes = 0;
    for (const std::int64_t length : ranges.lengths) bytes += length;
    require_room(to, bytes);
    std::span<const std::uint32_t> expected;
    if (checksums) {
      if (checksums->size() != offsets.size()) throw pybind11::value_error("as many checksums as ranges");
      expected = as_span(*checksums);
    }
    ReadCounts counts;
    std::int64_t mismatch = -1;
    {
      const pybind11::gil_scoped_release unlocked;
      counts = acquire()->read_ranges(ranges, expected, to.writable().data(), mismatch);
    }
    return pybind11::make_tuple(counts.commands, counts.blocks, mismatch);
  }

  pybind11::tuple gather(std::int64_t base, std::int64_t stride, std::int64_t width, const RowArray& rows,
                         const pybind11::object& target, HeldBlocks* held) const {
    if (base < 0 || stride < 1 || width < 1) throw pybind11::value_error("no such column");
    const ByteView to(target, true);
    require_room(to, rows.size() * width);
    ReadCounts counts;
    {
      const pybind11::gil_scoped_release unlocked;
      const RowItems items{base, stride, width, as_span(rows)};
      std::byte* const out = to.writable().data();
      counts = held == nullptr ? acquire()->gather(items, out) : acquire()->gather(items, out, *held);
    }
    return pybind11::make_tuple(counts.commands, counts.blocks);
  }

  pybind11::tuple gather_bits(std::int64_t base, const RowArray& rows, const pybind11::object& target) const {
    const auto selected = as_span(rows);
    const ByteView to(target, true);
    require_room(to, (rows.size() + 7) / 8);
    ReadCounts counts;
    {
      const pybind11::gil_scoped_release unlocked;
      std::vector<std::byte> bytes(selected.size());
      counts = acquire()->gather_bit_bytes({base, selected}, bytes.data());
      std::byte* const bits = to.writable().data();
      std::fill_n(bits, (selected.size() + 7) / 8, std::byte{0});
      for (std::size_t i = 0; i < selected.size(); ++i) {
        const std::byte bit = (bytes[i] >> (selected[i] & 7)) & std::byte{1};
        bits[i / 8] |= bit << (i % 8);
      }
    }
    return pybind11::make_tuple(counts.commands, counts.blocks);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const BlockFile> file_;
  std::string path_;
  std::int64_t block_size_;
};

}  // namespace bamquery
