// Rows dealt out by their keys' hashes, and values of rows in another order.
#pragma once

#include <cstdint>
#include <span>

#include "engine/native/keys/key_column.hpp"

namespace bamquery {

/// One hash a row: equal keys have equal ones in every frame and state of a query. Nulls count as values.
void hash_rows(std::span<const KeyColumn> columns, std::int64_t rows, std::uint64_t* hashes);

/// The same of strings, each from its offset to the next one's: of its length and up to eight words of eight
/// bytes, which are all of it up to 64 bytes. False where a string would not be within the `size` bytes.
bool hash_strings(std::span<const std::int64_t> offsets, const std::byte* data, std::int64_t size,
                  std::uint64_t* hashes);

/// Rows by those bits from `shift` on of their hashes that the greatest place in `ends` has. It gets where
/// the rows of each place end in `order`, which has them as they came.
void partition_rows(std::span<const std::uint64_t> hashes, int shift, std::span<std::int64_t> ends,
                    std::int64_t* order);

/// Values of 1, 2, 4 or 8 bytes at places; false where one is not among the `count` values.
bool gather_values(const std::byte* values, std::int64_t count, int width,
                   std::span<const std::int64_t> places, std::byte* target);

/// How places follow each other.
enum class PlaceOrder : std::uint8_t {
  kNone,    ///< One is not greater than that before.
  kAscend,  ///< Each is greater.
  kRun,     ///< Each is the next one.
};

PlaceOrder order_of_places(std::span<const std::int64_t> places);

/// Sets the flags at places; other threads may set some of the same array at once. False where a place is
/// outside.
bool set_flags(std::span<const std::int64_t> places, std::span<std::uint8_t> flags);

}  // namespace bamquery
