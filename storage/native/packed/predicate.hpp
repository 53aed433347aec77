// Conditions on a packed column, turned into intervals of the numbers that its vectors hold.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "storage/core/order_key.hpp"
#include "storage/native/packed/payload.hpp"

namespace bamquery {

__extension__ typedef unsigned __int128 WideOrderKey;

/// Order keys from `low` to `high`, both included; those of up to 64 bits zero-extended.
struct KeyInterval {
  WideOrderKey low;
  WideOrderKey high;
};

/// True for keys in one of the intervals; `negated`: in none.
struct KeyTerm {
  std::vector<KeyInterval> intervals;
  bool negated;
};

/// Numbers from `low` to `high`, both included.
struct NumberInterval {
  std::int64_t low;
  std::int64_t high;
};

/// Conditions that all must hold. Not for several threads at once: it keeps what it has computed.
class PackedPredicate {
 public:
  PackedPredicate(ValueKind kind, const PackedScale& scale, std::span<const KeyTerm> terms, bool wants_nulls);

  /// Rows pass if they are null, and only then; otherwise only rows that are not.
  bool wants_nulls() const { return wants_nulls_; }
  ValueKind kind() const { return kind_; }

  /// Which keys pass, ascending and apart.
  std::span<const KeyInterval> keys() const { return passing_; }
  bool passes(WideOrderKey key) const;
  /// Which numbers' values pass, ascending and apart; exact, for all numbers whose values do not wrap around.
  std::span<const NumberInterval> numbers(PackedForm form, std::uint32_t exponent);

 private:
  std::vector<NumberInterval> find_integers(const PackedScale& scale) const;
  template <typename T>
  std::vector<NumberInterval> find_floats(PackedForm form, std::uint32_t exponent) const;

  ValueKind kind_;
  PackedScale scale_;
  bool wants_nulls_;
  std::vector<KeyInterval> passing_;                            // ascending and apart
  std::map<std::uint32_t, std::vector<NumberInterval>> known_;  // by exponent_form
};

/// The key of a value as it is decoded.
template <typename T>
WideOrderKey wide_key(ValueKind kind, T value) {
  if (kind != ValueKind::kInt128) return order_key(value);
  __extension__ typedef __int128 Signed;
  return static_cast<WideOrderKey>(static_cast<Signed>(value)) ^ (WideOrderKey{1} << 127);
}

}  // namespace bamquery
