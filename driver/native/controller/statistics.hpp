// What a controller has done, counted by each thread for itself.
#pragma once

#include <atomic>
#include <cstdint>

namespace bamquery {

struct ControllerCounts {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t flushes = 0;
  std::uint64_t refused = 0;     ///< Commands that were not valid, of any opcode.
  std::uint64_t read_bytes = 0;  ///< Of commands that ended well.
  std::uint64_t write_bytes = 0;
  std::uint64_t errors = 0;  ///< Completions with a status other than success.
  std::uint64_t held = 0;    ///< Commands that a fault or a profile made wait.
  std::uint64_t lost = 0;    ///< Commands that got no completion.
  std::uint64_t looks = 0;   ///< Visits of queues that found commands.

  ControllerCounts& operator+=(const ControllerCounts& other) {
    reads += other.reads;
    writes += other.writes;
    flushes += other.flushes;
    refused += other.refused;
    read_bytes += other.read_bytes;
    write_bytes += other.write_bytes;
    errors += other.errors;
    held += other.held;
    lost += other.lost;
    looks += other.looks;
    return *this;
  }
};

/// Written by one thread, read by any: a plain addition, without a lock on the bus.
class Tally {
 public:
  void add(std::uint64_t more) {
    // Relaxed: nothing but the number is shared.
    value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// The tallies of one thread, on cache lines of their own.
struct alignas(64) ControllerTallies {
  Tally reads, writes, flushes, refused, read_bytes, write_bytes, errors, held, lost, looks;

  void add(const ControllerCounts& more) {
    reads.add(more.reads);
    writes.add(more.writes);
    flushes.add(more.flushes);
    refused.add(more.refused);
    read_bytes.add(more.read_bytes);
    write_bytes.add(more.write_bytes);
    errors.add(more.errors);
    held.add(more.held);
    lost.add(more.lost);
    looks.add(more.looks);
  }
  ControllerCounts counts() const {
    return {reads.value(),       writes.value(), flushes.value(), refused.value(), read_bytes.value(),
            write_bytes.value(), errors.value(), held.value(),    lost.value(),    looks.value()};
  }
};

}  // namespace bamquery
