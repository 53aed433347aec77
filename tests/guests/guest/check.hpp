// Results of checks in a guest, as tests/guests/results.py reads them.
#pragma once

#include <cstdarg>
#include <cstdio>

namespace guests {

// One line; a check gives its result once. The detail says what was seen, whether it holds or not.
[[gnu::format(printf, 3, 4)]] inline bool check(bool holds, const char* name, const char* detail, ...) {
  char text[512];
  std::va_list arguments;
  va_start(arguments, detail);
  std::vsnprintf(text, sizeof text, detail, arguments);
  va_end(arguments);
  std::printf("%s %s: %s\n", holds ? "ok" : "FAIL", name, text);
  std::fflush(stdout);  // a crash later leaves it
  return holds;
}

inline void skip(const char* name, const char* reason) {
  std::printf("skip %s: %s\n", name, reason);
  std::fflush(stdout);
}

}  // namespace guests
