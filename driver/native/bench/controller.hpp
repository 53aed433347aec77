// A software controller with one namespace, which is a benchmark's backing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "driver/native/bench/backing.hpp"
#include "driver/native/bench/bench_rings.hpp"
#include "driver/native/controller/statistics.hpp"

namespace bamquery {

struct RingOptions {
  std::uint32_t pairs = 1;  ///< All of them to lease.
  std::uint32_t depth = 64;
  std::uint32_t transfer_bytes = 4096;  ///< What a command moves at most.
  std::uint32_t block_bytes = 512;      ///< LBA size.
  std::uint32_t threads = 1;            ///< 0: clients do the controller's work.
  bool direct = false;                  ///< A file past the page cache.
  bool writable = false;
  std::string profile;  ///< Of the drives that are imitated; empty: none.
  std::uint32_t drives = 1;
  std::uint64_t deadline_ns = 10'000'000'000;
};

class BenchController {
 public:
  static constexpr std::uint32_t kNsid = 1;

  /// The backing outlives it. Throws StorageError, std::invalid_argument.
  BenchController(const BenchBacking& backing, const RingOptions& options);
  BenchController(const BenchController&) = delete;
  BenchController& operator=(const BenchController&) = delete;
  ~BenchController();

  /// What its clients use.
  BenchRings& rings();

  /// Ends its threads, so that figures stand still; clients have gone.
  void stop();

  ControllerCounts counts() const;
  /// After stop(): how threads read direct files, "io_uring", "preadv: ..."; empty where none did.
  std::string direct_path() const;

 private:
  struct Parts;

  std::unique_ptr<Parts> parts_;
};

}  // namespace bamquery
