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

/// A byte for each number from `low` on, whether it passes, and a last one for all others, 0; empty if there
/// is none.
struct NumberFlags {
  std::int64_t low = 0;
  std::vector<std::uint8_t> bytes;
};

/// Conditions that all must hold. Not for several threads at once: it keeps what it has computed.
class PackedPredicate {
 public:
  /// `nulls_pass`: rows that are null pass as well; no term is asked about them.
  PackedPredicate(ValueKind kind, const PackedScale& scale, std::span<const KeyTerm> terms, bool nulls_pass);

  /// The same conditions, for another thread.
  PackedPredicate(const PackedPredicate& other)
      : kind_(other.kind_), scale_(other.scale_), nulls_pass_(other.nulls_pass_), passing_(other.passing_) {}
  PackedPredicate& operator=(const PackedPredicate&) = delete;

  bool nulls_pass() const { return nulls_pass_; }
  ValueKind kind() const { return kind_; }

  /// Which keys pass, ascending and apart.
  std::span<const KeyInterval> keys() const { return passing_; }
  bool passes(WideOrderKey key) const;
  /// Which numbers' values pass, ascending and apart; exact, for all numbers whose values do not wrap around.
  std::span<const NumberInterval> numbers(const PackedVector& vector) { return known(vector).intervals; }
  /// The same as flags, where the numbers are many intervals near each other; else null.
  const NumberFlags* flags(const PackedVector& vector);

 private:
  struct Numbers {
    std::vector<NumberInterval> intervals;
    NumberFlags flags;
  };

  Numbers& known(const PackedVector& vector);
  std::vector<NumberInterval> find_integers(const PackedScale& scale) const;
  template <typename T>
  std::vector<NumberInterval> find_floats(PackedForm form, std::uint32_t exponent) const;

  ValueKind kind_;
  PackedScale scale_;
  bool nulls_pass_;
  std::vector<KeyInterval> passing_;       // ascending and apart
  std::map<std::uint8_t, Numbers> known_;  // by exponent_form
  Numbers* last_ = nullptr;                // of known_: vectors next to each other mostly are alike
  std::uint8_t last_form_ = 0;
};

/// The key of a value as it is decoded.
template <typename T>
WideOrderKey wide_key(ValueKind kind, T value) {
  if (kind != ValueKind::kInt128) return order_key(value);
  __extension__ typedef __int128 Signed;
  return static_cast<WideOrderKey>(static_cast<Signed>(value)) ^ (WideOrderKey{1} << 127);
}

}  // namespace bamquery
