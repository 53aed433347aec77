#include "engine/native/pipeline/logic.hpp"

#include <bit>

#include "engine/native/pipeline/validity.hpp"

namespace bamquery {
namespace {

template <typename Test>
[[gnu::always_inline]] inline void compare(const std::int64_t* a, const std::int64_t* b, std::int32_t count,
                                           std::uint8_t* out, Test test) {
  for (std::int32_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(test(a[i], b[i]));
}

[[gnu::always_inline]] inline bool equal_doubles(std::int64_t left, std::int64_t right) {
  const auto a = std::bit_cast<double>(left), b = std::bit_cast<double>(right);
  return (a == b) | ((a != a) & (b != b));
}

// NaN is less than nothing, and everything else is less than NaN.
[[gnu::always_inline]] inline bool less_doubles(std::int64_t left, std::int64_t right) {
  const auto a = std::bit_cast<double>(left), b = std::bit_cast<double>(right);
  return (a < b) | ((a == a) & (b != b));
}

BAMQUERY_CLONES void compare_equal(const std::int64_t* a, const std::int64_t* b, std::int32_t count,
                                   std::uint8_t* out) {
  compare(a, b, count, out, [](auto x, auto y) { return x == y; });
}
BAMQUERY_CLONES void compare_not_equal(const std::int64_t* a, const std::int64_t* b, std::int32_t count,
                                       std::uint8_t* out) {
  compare(a, b, count, out, [](auto x, auto y) { return x != y; });
}
BAMQUERY_CLONES void compare_less(const std::int64_t* a, const std::int64_t* b, std::int32_t count,
                                  std::uint8_t* out) {
  compare(a, b, count, out, [](auto x, auto y) { return x < y; });
}
BAMQUERY_CLONES void compare_less_equal(const std::int64_t* a, const std::int64_t* b, std::int32_t count,
                                        std::uint8_t* out) {
  compare(a, b, count, out, [](auto x, auto y) { return x <= y; });
}
BAMQUERY_CLONES void compare_equal_doubles(const std::int64_t* a, const std::int64_t* b, std::int32_t count,
                                           std::uint8_t* out) {
  compare(a, b, count, out, [](auto x, auto y) { return equal_doubles(x, y); });
}
BAMQUERY_CLONES void compare_not_equal_doubles(const std::int64_t* a, const std::int64_t* b,
                                               std::int32_t count, std::uint8_t* out) {
  compare(a, b, count, out, [](auto x, auto y) { return !equal_doubles(x, y); });
}
BAMQUERY_CLONES void compare_less_doubles(const std::int64_t* a, const std::int64_t* b, std::int32_t count,
                                          std::uint8_t* out) {
  compare(a, b, count, out, [](auto x, auto y) { return less_doubles(x, y); });
}
BAMQUERY_CLONES void compare_less_equal_doubles(const std::int64_t* a, const std::int64_t* b,
                                                std::int32_t count, std::uint8_t* out) {
  compare(a, b, count, out, [](auto x, auto y) { return !less_doubles(y, x); });
}

using Compare = void (*)(const std::int64_t*, const std::int64_t*, std::int32_t, std::uint8_t*);

Compare comparison_of(Operation operation) {
  switch (operation) {
    case Operation::kEqual:
      return compare_equal;
    case Operation::kNotEqual:
      return compare_not_equal;
    case Operation::kLess:
      return compare_less;
    case Operation::kLessEqual:
      return compare_less_equal;
    case Operation::kEqualDoubles:
      return compare_equal_doubles;
    case Operation::kNotEqualDoubles:
      return compare_not_equal_doubles;
    case Operation::kLessDoubles:
      return compare_less_doubles;
    case Operation::kLessEqualDoubles:
      return compare_less_equal_doubles;
    default:
      return nullptr;
  }
}

// AND is false, and OR true, where one side is, whatever the other one is. Flags of null rows are 0.
void junction(const Instruction& step, Register* registers, std::int32_t count) {
  const Register &a = registers[step.a], &b = registers[step.b];
  Register& out = registers[step.out];
  const bool both = step.operation == Operation::kAnd;
  const auto rows = static_cast<std::size_t>(count);
  if (a.all_valid && b.all_valid) {
    out.all_valid = true;
    for (std::size_t i = 0; i < rows; ++i) {
      out.flags[i] = both ? a.flags[i] & b.flags[i] : a.flags[i] | b.flags[i];
    }
    return;
  }
  for (std::size_t i = 0; i < rows; ++i) {
    const std::uint8_t known_a = is_valid(a, i), known_b = is_valid(b, i);
    const std::uint8_t flag_a = a.flags[i], flag_b = b.flags[i];
    const auto settled = static_cast<std::uint8_t>(both ? (known_a & (flag_a ^ 1)) | (known_b & (flag_b ^ 1))
                                                        : flag_a | flag_b);
    out.flags[i] = both ? flag_a & flag_b : flag_a | flag_b;
    out.valid[i] = static_cast<std::uint8_t>((known_a & known_b) | settled);
  }
  out.all_valid = false;
}

void negate(const Instruction& step, Register* registers, std::int32_t count) {
  copy_validity(step, registers, count);
  const Register& a = registers[step.a];
  Register& out = registers[step.out];
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) out.flags[i] = a.flags[i] ^ 1;
  clear_null_flags(out, count);
}

void ask_null(const Instruction& step, Register* registers, std::int32_t count) {
  const Register& a = registers[step.a];
  Register& out = registers[step.out];
  const std::uint8_t flip = step.operation == Operation::kIsNull ? 1 : 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) out.flags[i] = is_valid(a, i) ^ flip;
  out.all_valid = true;
}

// By masks, which vector units have, and branches that are not foreseen are none.
BAMQUERY_CLONES void choose_words(const std::uint8_t* flags, const std::int64_t* yes, const std::int64_t* no,
                                  std::int32_t count, std::int64_t* out) {
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int64_t mask = -static_cast<std::int64_t>(flags[i]);
    out[i] = (yes[i] & mask) | (no[i] & ~mask);
  }
}

BAMQUERY_CLONES void choose_bytes(const std::uint8_t* flags, const std::uint8_t* yes, const std::uint8_t* no,
                                  std::int32_t count, std::uint8_t* out) {
  for (std::int32_t i = 0; i < count; ++i) {
    const auto other = static_cast<std::uint8_t>(flags[i] ^ 1);
    out[i] = static_cast<std::uint8_t>((yes[i] & flags[i]) | (no[i] & other));
  }
}

void choose(const Instruction& step, Register* registers, std::int32_t count) {
  const Register &condition = registers[step.a], &yes = registers[step.b], &no = registers[step.c];
  Register& out = registers[step.out];
  const auto rows = static_cast<std::size_t>(count);
  const bool all_valid = yes.all_valid && no.all_valid;
  if (!all_valid) {
    for (std::size_t i = 0; i < rows; ++i) {
      out.valid[i] = condition.flags[i] != 0 ? is_valid(yes, i) : is_valid(no, i);
    }
  }
  const std::uint8_t* const flags = condition.flags.data();
  if (step.operation == Operation::kChooseFlag) {
    choose_bytes(flags, yes.flags.data(), no.flags.data(), count, out.flags.data());
  } else {
    choose_words(flags, yes.words.data(), no.words.data(), count, out.words.data());
  }
  out.all_valid = all_valid;
}

void coalesce(const Instruction& step, Register* registers, std::int32_t count) {
  const Register &a = registers[step.a], &b = registers[step.b];
  Register& out = registers[step.out];
  const bool all_valid = a.all_valid || b.all_valid;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const std::uint8_t known = is_valid(a, i);
    out.words[i] = known != 0 ? a.words[i] : b.words[i];
    if (!all_valid) out.valid[i] = static_cast<std::uint8_t>(known | is_valid(b, i));
  }
  out.all_valid = all_valid;
}

}  // namespace

void run_logic(const Instruction& step, Register* registers, std::int32_t count) {
  Register& out = registers[step.out];
  if (const Compare run = comparison_of(step.operation); run != nullptr) {
    join_validity(step, registers, count);
    run(registers[step.a].words.data(), registers[step.b].words.data(), count, out.flags.data());
    clear_null_flags(out, count);
    return;
  }
  switch (step.operation) {
    case Operation::kAnd:
    case Operation::kOr:
      return junction(step, registers, count);
    case Operation::kNot:
      return negate(step, registers, count);
    case Operation::kIsNull:
    case Operation::kIsNotNull:
      return ask_null(step, registers, count);
    case Operation::kCoalesce:
      return coalesce(step, registers, count);
    case Operation::kFlagToWord:
      copy_validity(step, registers, count);
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        out.words[i] = registers[step.a].flags[i];
      }
      return;
    default:
      return choose(step, registers, count);
  }
}

}  // namespace bamquery
