// The parts of rings_test.
#pragma once

#include <cstdint>

#include "driver/core/queues/queue_pair.hpp"

namespace bamquery {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kLong = 60 * kSecond;  ///< For what must come; a test never waits for it to pass.

inline Deadline later() { return Deadline::in(kLong); }

/// A time that is over: one look.
constexpr Deadline kNow{0};

inline Request read(std::uint64_t lba, std::uint32_t blocks = 1) { return {Opcode::kRead, 1, lba, blocks}; }

void test_queue_memory();
void test_queue_pair();
void test_queue_pool();
void test_serviced_pairs();

/// Random commands on random rings, with faults, for so long.
void stress_rings(double seconds, std::uint32_t seed);

}  // namespace bamquery
