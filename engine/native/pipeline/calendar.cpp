#include "engine/native/pipeline/calendar.hpp"

#include "engine/native/pipeline/validity.hpp"

namespace bamquery {
namespace {

constexpr std::int64_t kFarthestDay = std::int64_t{1} << 40;  // beyond all dates, and no sum below overflows

struct CivilDay {
  std::int64_t year;
  std::int64_t month;
  std::int64_t day;
};

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
  return {year + era * 400 + (month <= 2 ? 1 : 0), month, of_year - (153 * shifted_month + 2) / 5 + 1};
}

}  // namespace

bool run_calendar(const Instruction& step, Register* registers, std::int32_t count) {
  copy_validity(step, registers, count);
  const Register& a = registers[step.a];
  Register& out = registers[step.out];
  bool known = true;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const std::int64_t days = a.words[i];
    if (days > kFarthestDay || days < -kFarthestDay) {
      known = false;
      continue;
    }
    const CivilDay civil = civil_of(days);
    out.words[i] = step.operation == Operation::kYear    ? civil.year
                   : step.operation == Operation::kMonth ? civil.month
                                                         : civil.day;
  }
  clear_null_words(out, count);
  return known;
}

}  // namespace bamquery
