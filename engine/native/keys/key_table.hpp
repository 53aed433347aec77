// Rows found by their keys: a table of places, or of hashes, of codes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/native/keys/key_column.hpp"
#include "engine/native/keys/row_codes.hpp"
#include "engine/native/keys/zeroed_table.hpp"

namespace bamquery {

/// Looked up by any number of threads at once.
class KeyTable {
 public:
  /// Rows that one holds at most: their places have 32 bits, and the last one is none.
  static constexpr std::int64_t kMostRows = 0xFFFFFFFF;

  /// Of rows whose keys have codes; nothing where they have none. Rows with a null that equals nothing are
  /// never found.
  static std::optional<KeyTable> make(std::span<const KeyColumn> columns, std::int64_t rows,
                                      const std::vector<bool>& nulls_equal);

  std::int64_t nbytes() const;
  std::size_t columns() const { return columns_; }

  /// What rows of the other side have found.
  struct Lookup {
    std::vector<std::uint32_t> firsts;  ///< the only row, or the place of the first one
    std::vector<std::uint32_t> counts;  ///< where keys repeat, how many there are
    std::int64_t rows = 0;              ///< looked up
    std::int64_t pairs = 0;             ///< found
  };

  /// For rows from `start` on: as many as have `pairs` partners together at most, or one that has more.
  Lookup look_up(std::span<const KeyColumn> columns, std::int64_t start, std::int64_t rows,
                 std::int64_t pairs) const;

  /// The pairs, by ascending row of the other side and then of this one.
  void write_pairs(const Lookup& lookup, std::int64_t start, std::int64_t* positions,
                   std::int64_t* found) const;

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  struct Slot {
    std::uint64_t code;
    std::uint32_t first;
    std::uint32_t count;  // 0: a free slot
  };

  explicit KeyTable(RowCodes codes) : codes_(std::move(codes)) {}
  template <typename Use>
  void each_usable(std::span<const KeyColumn> columns, std::int64_t start, std::int64_t rows,
                   Use&& use) const;
  void build_places(std::span<const KeyColumn> columns, std::int64_t rows);
  void build_slots(std::span<const KeyColumn> columns, std::int64_t rows);
  void find_block(std::int64_t count, const std::uint64_t* codes, std::uint8_t* usable, std::uint32_t* firsts,
                  std::uint32_t* counts) const;

  RowCodes codes_;
  std::size_t columns_ = 0;
  bool is_dense_ = false;
  bool is_unique_ = true;
  ZeroedTable<std::uint32_t> places_;  // by code: the row and 1, or where rows begin and, one further, end
  ZeroedTable<Slot> slots_;
  std::uint64_t mask_ = 0;
  std::vector<std::uint32_t> order_;  // rows by key, where keys repeat
};

}  // namespace bamquery
