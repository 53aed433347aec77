// Software controllers as backends: over memory, mapped files and direct ones, with threads or none.
#pragma once

#include <string>

#include "tests/native/conformance/backend.hpp"

namespace bamquery::conformance {

struct SoftwareOptions {
  std::string backing = "memory";  ///< Or "mapped", "direct".
  std::uint32_t block_bytes = 512;
  int threads = 1;
  std::uint32_t depth = 65536;  ///< Of the deepest rings.
  std::string folder = ".";     ///< For files.
  /// What is done wrong, to show that it is found: "" (nothing), "byte" (one of the pattern differs), "tear"
  /// (writes lose their end), "error" (a read in a thousand fails), "lose" (one is never answered),
  /// "late-flush" (flushes fail).
  std::string plant;
};

/// std::invalid_argument for names that mean nothing; StorageError for files that cannot be had.
std::unique_ptr<Backend> make_software_backend(const SoftwareOptions& options);

}  // namespace bamquery::conformance
