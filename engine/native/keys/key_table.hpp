// Rows found by their keys: a bit for each code, with how many are set before it, or a table of hashes.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "driver/native/memory/large_vector.hpp"
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
    LargeVector<std::uint32_t> firsts;  ///< the only row, or the place of the first one
    LargeVector<std::uint32_t> counts;  ///< where keys repeat, how many there are
    std::int64_t rows = 0;              ///< looked up
    std::int64_t pairs = 0;             ///< found

    /// Rows that one thread has looked up.
    struct Part {
      std::int64_t row = 0;  ///< the first
      std::int64_t rows = 0;
      std::int64_t pairs = 0;
    };
    std::vector<Part> parts;  ///< of several threads; none: all are one's
  };

  /// For rows from `start` on: so many that they have about `pairs` partners together, and no more; or one
  /// row that has more.
  Lookup look_up(std::span<const KeyColumn> columns, std::int64_t start, std::int64_t rows,
                 std::int64_t pairs) const;

  /// Writes 1 for each of these rows whose key is one of the table's, else 0.
  void mark(std::span<const KeyColumn> columns, std::int64_t rows, std::uint8_t* marks) const;

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
  Lookup look_up_first(std::span<const KeyColumn> columns, std::int64_t start, std::int64_t rows,
                       std::int64_t pairs) const;
  bool look_up_more(Lookup& found, std::span<const KeyColumn> columns, std::int64_t start, std::int64_t rows,
                    std::int64_t pairs) const;
  void write_part(const Lookup& lookup, const Lookup::Part& part, std::int64_t start, std::int64_t* positions,
                  std::int64_t* found) const;
  void build_bits(std::span<const KeyColumn> columns, std::int64_t rows);
  std::uint64_t set_bits(std::span<const KeyColumn> columns, std::int64_t rows, std::int64_t shares);
  std::uint64_t count_bits();
  void build_slots(std::span<const KeyColumn> columns, std::int64_t rows);
  void find_block(std::int64_t count, const std::uint64_t* codes, std::uint8_t* usable, std::uint32_t* firsts,
                  std::uint32_t* counts) const;
  void find_by_bits(std::int64_t count, const std::uint64_t* codes, std::uint8_t* usable,
                    std::uint32_t* firsts, std::uint32_t* counts) const;

  // 64 codes: a bit for each that a row has, and how many there are before them. A sixteenth of a place for
  // each code, so that most tables stay in a cache.
  struct Word {
    std::uint64_t bits;
    std::uint64_t before;

    bool has(std::uint64_t code) const { return (bits >> (code % 64) & 1) != 0; }
    std::uint64_t rank(std::uint64_t code) const {
      return before + static_cast<std::uint64_t>(std::popcount(bits & ((1ULL << (code % 64)) - 1)));
    }
  };

  RowCodes codes_;
  std::size_t columns_ = 0;
  bool is_dense_ = false;
  bool is_unique_ = true;
  std::int64_t rows_each_ = 1;  // of a key, about
  bool is_sorted_ = false;      // rows are in the order of their codes, and each has one: `order_` is none
  ZeroedTable<Word> words_;     // by code
  std::vector<std::uint32_t> begins_;  // by number of the code, where keys repeat: where its rows begin
  ZeroedTable<Slot> slots_;
  std::uint64_t mask_ = 0;
  std::vector<std::uint32_t> rows_;   // by code, `kNone` where there is none: of few codes that are unique
  ZeroedTable<std::uint32_t> order_;  // rows by code, or by slot where keys repeat
};

}  // namespace bamquery
