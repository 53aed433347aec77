// The suite over software controllers: `[--backing memory|mapped|direct] [--block BYTES] [--threads N]
// [--depth N] [--folder PATH] [--plant WHAT]`, and the options of runner.hpp. Options go with the run that
// `--go` ends.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>

#include "tests/native/conformance/runner.hpp"
#include "tests/native/conformance/software_backend.hpp"

namespace bamquery::conformance {
namespace {

int run_software(const Options& options, const SoftwareOptions& software) {
  const std::string prefix = software.backing + "-" + std::to_string(software.block_bytes) + "-" +
                             std::to_string(software.threads) + "/";
  return run_checks(*make_software_backend(software), options, prefix);
}

int run_arguments(int argc, char** argv) {
  Options options;
  SoftwareOptions software;
  int failures = 0;
  bool is_over = false;
  for (int at = 1; at < argc; ++at) {
    is_over = std::strcmp(argv[at], "--go") == 0;
    if (is_over) {
      failures += run_software(options, software);
      continue;
    }
    if (take_option(options, argc, argv, at)) continue;
    const std::string name = argv[at];
    if (at + 1 >= argc) throw std::invalid_argument("no such option: " + name);
    const std::string value = argv[++at];
    if (name == "--backing") {
      software.backing = value;
    } else if (name == "--block") {
      software.block_bytes = static_cast<std::uint32_t>(std::stoul(value));
    } else if (name == "--threads") {
      software.threads = std::stoi(value);
    } else if (name == "--depth") {
      software.depth = static_cast<std::uint32_t>(std::stoul(value));
    } else if (name == "--folder") {
      software.folder = value;
    } else if (name == "--plant") {
      software.plant = value;
    } else {
      throw std::invalid_argument("no such option: " + name);
    }
  }
  if (!is_over) failures += run_software(options, software);
  return failures;
}

}  // namespace
}  // namespace bamquery::conformance

int main(int argc, char** argv) {
  try {
    return std::min(bamquery::conformance::run_arguments(argc, argv), 100);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 101;
  }
}
