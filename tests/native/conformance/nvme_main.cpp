// The suite over drives: `[--writable] [--contents N] [--patterned BYTES] [--block BYTES]
// [--doorbells automatic|registers|shadow|forwarded] ADDRESS...`, and the options of runner.hpp. Without
// --writable nothing is written; names of checks begin with PREFIX where `--prefix PREFIX` says so.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/native/conformance/nvme_backend.hpp"
#include "tests/native/conformance/runner.hpp"

namespace bamquery::conformance {
namespace {

DoorbellKind doorbell_kind(const std::string& name) {
  if (name == "automatic") return DoorbellKind::kAutomatic;
  if (name == "registers") return DoorbellKind::kRegisters;
  if (name == "shadow") return DoorbellKind::kShadow;
  if (name == "forwarded") return DoorbellKind::kForwarded;
  throw std::invalid_argument("there are no such doorbells: " + name);
}

int run_drives(int argc, char** argv) {
  Options options;
  NvmeOptions nvme;
  std::string prefix;
  std::vector<std::string> addresses;
  for (int at = 1; at < argc; ++at) {
    if (take_option(options, argc, argv, at)) continue;
    const std::string name = argv[at];
    if (name == "--writable") {
      nvme.writable = true;
      continue;
    }
    if (name.rfind("--", 0) != 0) {
      addresses.push_back(name);
      continue;
    }
    if (at + 1 >= argc) throw std::invalid_argument("no such option: " + name);
    const std::string value = argv[++at];
    if (name == "--contents") {
      nvme.contents = std::stoull(value);
    } else if (name == "--patterned") {
      nvme.patterned_bytes = std::stoull(value);
    } else if (name == "--block") {
      nvme.block_bytes = static_cast<std::uint32_t>(std::stoul(value));
    } else if (name == "--doorbells") {
      nvme.doorbells = doorbell_kind(value);
    } else if (name == "--prefix") {
      prefix = value;
    } else {
      throw std::invalid_argument("no such option: " + name);
    }
  }
  if (addresses.empty()) throw std::invalid_argument("there is no drive to check");
  int failures = 0;
  // Drives are patterned by their number.
  for (std::size_t i = 0; i < addresses.size(); ++i, ++nvme.contents) {
    nvme.address = addresses[i];
    const std::string drive = addresses.size() == 1 ? "" : "drive" + std::to_string(i) + "/";
    failures += run_checks(*make_nvme_backend(nvme), options, prefix + drive);
  }
  return failures;
}

}  // namespace
}  // namespace bamquery::conformance

int main(int argc, char** argv) {
  try {
    return std::min(bamquery::conformance::run_drives(argc, argv), 100);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 101;
  }
}
