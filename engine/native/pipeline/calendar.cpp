#include "engine/native/pipeline/calendar.hpp"

#include "engine/native/pipeline/validity.hpp"

namespace bamquery {
namespace {

constexpr std::int64_t kFarthestDay = std::int64_t{1} << 40;  // beyond all dates, and no sum below overflows

struct CivilDay {
  std::int64_t year;
  std::int64_t month;
  std::int64_t day;
  std::int64_t of_year;
};

constexpr bool is_leap(std::int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

// Eras of 400 years, or 146,097 days, that begin on a first of March, so that a leap day is a year's last:
// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
CivilDay civil_of(std::int64_t days) {
  const std::int64_t shifted = days + 719'468;
  const std::int64_t era = (shifted >= 0 ? shifted : shifted - 146'096) / 146'097;
  const std::int64_t of_era = shifted - era * 146'097;
  const std::int64_t year = (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
  const std::int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  const std::int64_t shifted_month = (5 * of_year + 2) / 153;
  const std::int64_t month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  const std::int64_t own_year = year + era * 400 + (month <= 2 ? 1 : 0);
  return {own_year, month, of_year - (153 * shifted_month + 2) / 5 + 1,
          month <= 2 ? of_year - 305 : of_year + 60 + (is_leap(own_year) ? 1 : 0)};
}

std::int64_t part_of(const CivilDay& day, Operation part) {
  switch (part) {
    case Operation::kYear:
      return day.year;
    case Operation::kMonth:
      return day.month;
    case Operation::kDay:
      return day.day;
    default:
      return day.of_year;
  }
}

// Days that 32 bits are enough for once they are counted from the beginning of an era 400,000 years ago.
constexpr std::int64_t kEras = 1000;
constexpr std::int64_t kShift = 719'468 + kEras * 146'097;
constexpr std::int64_t kLastNearDay = (std::int64_t{1} << 30) - kShift - 1;

BAMQUERY_CLONES bool are_near(const std::int64_t* days, std::int32_t count) {
  std::int64_t outside = 0;
  for (std::int32_t i = 0; i < count; ++i) outside |= (days[i] < -kShift) | (days[i] > kLastNearDay);
  return outside == 0;
}

// The same in 32 bits, without a branch: C. Neri and L. Schneider, "Euclidean affine functions and their
// application to calendar algorithms" (2023).
template <Operation kPart>
[[gnu::always_inline]] inline void near_parts(const std::int64_t* days, std::int32_t count,
                                              std::int64_t* out) {
  for (std::int32_t i = 0; i < count; ++i) {
    const std::uint32_t quarters = 4 * static_cast<std::uint32_t>(days[i] + kShift) + 3;
    const std::uint32_t century = quarters / 146'097;
    const std::uint32_t rest = (quarters % 146'097) | 3;  // quarters of days of the century
    const std::uint64_t product = std::uint64_t{2'939'745} * rest;
    const auto year = static_cast<std::uint32_t>(product >> 32);
    const std::uint32_t of_year = static_cast<std::uint32_t>(product) / 2'939'745 / 4;  // from March on
    const bool next = of_year >= 306;
    if constexpr (kPart == Operation::kYear) {
      out[i] = std::int64_t{100 * century + year} - 400 * kEras + (next ? 1 : 0);
    } else if constexpr (kPart == Operation::kDayOfYear) {
      const bool leap = year % 4 == 0 && (year != 0 || century % 4 == 0);
      out[i] = std::int64_t{next ? of_year - 305 : of_year + 60 + (leap ? 1 : 0)};
    } else {
      const std::uint32_t months = 2141 * of_year + 197'913;
      const std::uint32_t month = months >> 16;
      out[i] = kPart == Operation::kMonth ? std::int64_t{next ? month - 12 : month}
                                          : std::int64_t{(months & 0xffff) / 2141 + 1};
    }
  }
}

BAMQUERY_CLONES void near_years(const std::int64_t* days, std::int32_t count, std::int64_t* out) {
  near_parts<Operation::kYear>(days, count, out);
}
BAMQUERY_CLONES void near_months(const std::int64_t* days, std::int32_t count, std::int64_t* out) {
  near_parts<Operation::kMonth>(days, count, out);
}
BAMQUERY_CLONES void near_days(const std::int64_t* days, std::int32_t count, std::int64_t* out) {
  near_parts<Operation::kDay>(days, count, out);
}
BAMQUERY_CLONES void near_days_of_year(const std::int64_t* days, std::int32_t count, std::int64_t* out) {
  near_parts<Operation::kDayOfYear>(days, count, out);
}

bool far_parts(Operation part, const std::int64_t* days, std::int32_t count, std::int64_t* out) {
  bool known = true;
  for (std::int32_t i = 0; i < count; ++i) {
    const bool beyond = days[i] > kFarthestDay || days[i] < -kFarthestDay;
    known &= !beyond;
    out[i] = part_of(civil_of(beyond ? 0 : days[i]), part);
  }
  return known;
}

}  // namespace

bool run_calendar(const Instruction& step, Register* registers, std::int32_t count) {
  copy_validity(step, registers, count);
  const std::int64_t* const days = registers[step.a].words.data();
  Register& out = registers[step.out];
  std::int64_t* const words = out.words.data();
  bool known = true;
  if (!are_near(days, count)) {
    known = far_parts(step.operation, days, count, words);
  } else if (step.operation == Operation::kYear) {
    near_years(days, count, words);
  } else if (step.operation == Operation::kMonth) {
    near_months(days, count, words);
  } else if (step.operation == Operation::kDay) {
    near_days(days, count, words);
  } else {
    near_days_of_year(days, count, words);
  }
  clear_null_words(out, count);
  return known;
}

}  // namespace bamquery
