// Vectors of a packed column, as they are read one turn after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "driver/native/files/block_file.hpp"
#include "driver/native/unset_vector.hpp"
#include "storage/native/packed/selecting/fetch.hpp"

namespace bamquery {

/// Some of a turn's vectors in memory, as `compare_packed` and programs take them.
struct LoadedVectors {
  std::span<const std::byte> payload;
  std::vector<std::int64_t> starts;
  std::vector<PackedVector> vectors;
  std::vector<std::int64_t> rows;
};

/// Reads vectors of a column for who looks at some, and then at more of those behind them.
///
/// Whatever is read twice within a turn is in memory, and no vector is read in two turns.
class ColumnVectors {
 public:
  /// `candidates`: ascending numbers of all vectors that may be asked for, `most` of them in a turn. `kept`:
  /// payloads of all turns stay, end to end; else those of a turn do.
  ///
  /// Raises std::invalid_argument where parameters are impossible or the column has no such vector.
  ColumnVectors(const BlockFile& file, const StoredPackedColumn& column,
                std::span<const std::int64_t> candidates, std::size_t most, bool kept);

  /// Says that all candidates will be read.
  void expect_all();

  /// The turn of candidates `first` and those behind it.
  void begin_turn(std::size_t first);

  /// Has vectors in memory: `turn` are ascending places behind the turn's first candidate. False where one of
  /// them does not have its checksum: `mismatch()` is its number.
  bool load(std::span<const std::uint32_t> turn, LoadedVectors& out);

  /// Reads all candidates to `target`, in large requests; false as `load`. Nothing else is asked for then.
  bool read_all(std::byte* target, ReadCounts& counts);

  std::int64_t mismatch() const { return mismatch_; }
  /// Of all candidates, in bytes.
  std::int64_t size() const { return size_; }
  std::int64_t rows_of(std::size_t candidate) const { return rows_[candidate]; }
  const StoredPackedColumn& column() const { return column_; }

  /// What all reads were, in commands and blocks.
  ReadCounts count() const;
  /// The same of reads of several that are parts of one column, one after the other.
  static ReadCounts count(std::span<const ColumnVectors* const> parts);
  /// Numbers of the vectors that were read, and the bytes of each.
  const std::vector<std::int64_t>& read() const { return read_; }
  const std::vector<std::int64_t>& lengths() const { return read_lengths_; }
  /// Of kept ones, bytes of the payloads, and a copy of them.
  std::size_t used() const { return used_; }
  void copy_payload(std::byte* target) const;
  /// The payloads themselves; whoever calls owns them.
  UnsetVector<std::byte> take_payload();

 private:
  static constexpr std::int64_t kUnread = -1;

  void read(std::span<const std::uint32_t> missing);
  bool is_at_hand();

  const BlockFile& file_;
  const StoredPackedColumn& column_;
  std::span<const std::int64_t> candidates_;
  bool kept_;
  std::optional<bool> at_hand_;  // once somebody has asked
  std::int64_t size_ = 0;
  std::size_t first_ = 0;
  std::size_t buffer_bytes_;           // that it ever has
  std::size_t used_ = 0;               // of these
  std::vector<std::int64_t> offsets_;  // in the file, of each candidate
  std::vector<std::int64_t> lengths_;
  std::vector<std::int64_t> rows_;
  std::vector<std::int64_t> places_;  // in the buffer, of each of the turn; kUnread
  UnsetVector<std::byte> buffer_;
  std::vector<std::int64_t> read_, read_lengths_, read_offsets_;
  std::vector<std::uint32_t> missing_;
  std::vector<std::int64_t> asked_, asked_lengths_;
  std::vector<std::uint32_t> asked_checksums_;
  std::int64_t mismatch_ = -1;
};

}  // namespace bamquery
