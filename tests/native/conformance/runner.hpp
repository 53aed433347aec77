// Runs checks over a backend, a line each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/native/conformance/check.hpp"

namespace bamquery::conformance {

struct Options {
  Settings settings;
  std::vector<std::string> filters;          ///< Parts of names; none: all checks.
  std::vector<std::string> without;          ///< Parts of names that are left out.
  std::uint64_t check_ns = 120'000'000'000;  ///< A check takes no longer, or the program ends.
  bool times = false;                        ///< Says what each took.
};

/// Takes an argument that means something here: --seed N, --effort F, --rounds N (stops with commands in
/// flight), --patience SECONDS (for one command), --deadline SECONDS (for one check), --filter PART,
/// --without PART, --times. False, and `at` as it was, for another one. std::invalid_argument.
bool take_option(Options& options, int argc, char** argv, int& at);

/// Prints `ok NAME: detail`, `FAIL NAME: what` or `skip NAME: reason` for each check, whose names begin with
/// `prefix`; returns how many failed. A check that is not over at its deadline is a failure that ends the
/// program.
int run_checks(Backend& backend, const Options& options, const std::string& prefix = "");

}  // namespace bamquery::conformance
