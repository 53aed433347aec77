#include "driver/native/bench/clients.hpp"

#include <sys/resource.h>

#include <exception>
#include <utility>

namespace bamquery {

double process_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

BenchClients::BenchClients(std::uint32_t clients, Work work) : work_(std::move(work)), thrown_(clients) {
  for (std::uint32_t client = 0; client < clients; ++client) {
    tallies_.push_back(std::make_unique<ClientTally>());
  }
  running_.store(clients, std::memory_order_relaxed);  // starting a thread publishes it
  cpu_start_ = process_cpu_seconds();
  start_ = std::chrono::steady_clock::now();
  try {
    for (std::uint32_t client = 0; client < clients; ++client) {
      threads_.emplace_back([this, client] {
        try {
          work_(client, stop_, *tallies_[client]);
        } catch (...) {
          thrown_[client] = std::current_exception();
        }
        running_.fetch_sub(1, std::memory_order_release);  // what the client counted, before "finished"
      });
    }
  } catch (...) {
    end_threads();
    throw;
  }
}

BenchClients::~BenchClients() { end_threads(); }

std::uint64_t BenchClients::operations() const {
  std::uint64_t sum = 0;
  for (const auto& tally : tallies_) sum += tally->operations();
  return sum;
}

std::uint64_t BenchClients::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& tally : tallies_) sum += tally->bytes();
  return sum;
}

double BenchClients::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

ClientsResult BenchClients::stop() {
  end_threads();
  ClientsResult result;
  result.seconds = seconds();
  result.cpu_seconds = process_cpu_seconds() - cpu_start_;
  for (const std::exception_ptr& thrown : thrown_) {
    if (thrown) std::rethrow_exception(thrown);
  }
  for (const auto& tally : tallies_) {
    result.operations += tally->operations();
    result.bytes += tally->bytes();
    result.latency.merge(tally->latency);
    if (result.errors == 0) result.first_error = tally->first_error;
    if (result.mismatches == 0) result.first_mismatch = tally->first_mismatch;
    result.errors += tally->errors;
    result.mismatches += tally->mismatches;
  }
  return result;
}

void BenchClients::end_threads() {
  stop_.store(true, std::memory_order_relaxed);  // a hint to hurry; nothing else is published by it
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace bamquery
