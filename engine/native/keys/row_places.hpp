// Places of rows: how they follow each other, and flags of those that are among them.
#pragma once

#include <cstdint>
#include <span>

namespace bamquery {

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
