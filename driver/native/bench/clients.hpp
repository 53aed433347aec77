// Threads that do a benchmark's operations until they are told to stop, and what they count.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "driver/native/bench/latency_histogram.hpp"

namespace bamquery {

/// What one client did. Its owner adds; others read the two counts while it runs.
class ClientTally {
 public:
  void add(std::uint64_t bytes, std::uint64_t ns) {
    add_many(1, bytes);
    latency.add(ns);
  }
  /// Operations that were not timed one by one.
  void add_many(std::uint64_t operations, std::uint64_t bytes) {
    // Relaxed: figures for a progress line; joining the thread publishes the final ones. One writer, so no
    // read-modify-write is needed.
    operations_.store(operations_.load(std::memory_order_relaxed) + operations, std::memory_order_relaxed);
    bytes_.store(bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  /// A command that failed; the first one's words are kept.
  void fail(const std::string& what) {
    if (errors++ == 0) first_error = what;
  }
  /// Bytes that are not what they should be, at this offset of the extent.
  void mismatch(std::uint64_t offset) {
    if (mismatches++ == 0) first_mismatch = offset;
  }

  std::uint64_t operations() const { return operations_.load(std::memory_order_relaxed); }
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  LatencyHistogram latency;
  std::uint64_t errors = 0;
  std::string first_error;
  std::uint64_t mismatches = 0;
  std::uint64_t first_mismatch = 0;

 private:
  std::atomic<std::uint64_t> operations_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

/// What all clients did.
struct ClientsResult {
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
  double cpu_seconds = 0;  ///< Of the whole process, meanwhile.
  LatencyHistogram latency;
  std::uint64_t errors = 0;
  std::string first_error;
  std::uint64_t mismatches = 0;
  std::uint64_t first_mismatch = 0;
};

/// Runs `work(client, stop, tally)` on a thread for each client. It returns soon after `stop` is set.
class BenchClients {
 public:
  using Work = std::function<void(std::uint32_t client, const std::atomic<bool>& stop, ClientTally& tally)>;

  BenchClients(std::uint32_t clients, Work work);
  BenchClients(const BenchClients&) = delete;
  BenchClients& operator=(const BenchClients&) = delete;
  ~BenchClients();

  std::uint64_t operations() const;
  std::uint64_t bytes() const;
  /// Whether all clients have given up by themselves.
  bool finished() const { return running_.load(std::memory_order_acquire) == 0; }
  /// Since the clients began.
  double seconds() const;

  /// Stops the clients, waits for them, and adds up; once. Throws what a client has thrown.
  ClientsResult stop();

 private:
  void end_threads();

  Work work_;
  std::vector<std::unique_ptr<ClientTally>> tallies_;
  std::vector<std::exception_ptr> thrown_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint32_t> running_{0};
  std::chrono::steady_clock::time_point start_;
  double cpu_start_ = 0;
};

/// Processor seconds of this process, user and system.
double process_cpu_seconds();

}  // namespace bamquery
