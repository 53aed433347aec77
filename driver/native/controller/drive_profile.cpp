#include "driver/native/controller/drive_profile.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace bamquery {

std::span<const DriveProfile> drive_profiles() {
  static const std::array<DriveProfile, 3> profiles{{
      // Paper: 11 us; reads 5.1 M/s at 512 B, 1.5 M/s at 4 KiB. Data sheet: 7.2 and 6.2 GB/s sequential.
      {"Intel Optane P5800X", 11'000, 11'000, 5.1e6, 1.5e6, 6.2e9, 6.2e9},
      // Paper: 25 us; reads 1.1 M/s at 512 B, 1.6 M/s at 4 KiB (so 1.6 M/s bounds both: the model has no
      // drive
      // that is slower at less). Data sheet of the 983 ZET's successor: 8 and 3.8 GB/s sequential.
      {"Samsung Z-NAND", 25'000, 25'000, 1.6e6, 0.25e6, 8.0e9, 3.8e9},
      // Paper: 324 us; reads 0.75 to 0.8 M/s at either size. Data sheet: 7.0 and 5.0 GB/s sequential.
      {"Samsung 980 Pro", 324'000, 324'000, 0.8e6, 0.172e6, 7.0e9, 5.0e9},
  }};
  return profiles;
}

DrivePacer::DrivePacer(DriveProfile profile, std::uint32_t drives)
    : profile_(std::move(profile)), drives_(drives), start_ns_(now_ns()) {
  const double rates[] = {profile_.read_commands, profile_.write_commands, profile_.read_bytes,
                          profile_.write_bytes};
  if (drives == 0 || !std::ranges::all_of(rates, [](double rate) { return rate >= 1; })) {
    throw std::invalid_argument("a profile has one drive or more, and rates of one a second or more");
  }
}

std::uint64_t DrivePacer::cost_ps(Opcode opcode, std::uint64_t bytes) const {
  if (opcode == Opcode::kFlush) return 0;
  const bool reads = opcode == Opcode::kRead;
  const double command = 1 / (reads ? profile_.read_commands : profile_.write_commands);
  const double transfer = static_cast<double>(bytes) / (reads ? profile_.read_bytes : profile_.write_bytes);
  return static_cast<std::uint64_t>(1e12 * std::max(command, transfer) / drives_);
}

std::uint64_t DrivePacer::reserve(std::uint64_t now_ns, std::uint64_t cost_ps) {
  const std::uint64_t now_ps = (now_ns - std::min(now_ns, start_ns_)) * 1000;
  std::uint64_t free = free_ps_.load(std::memory_order_relaxed);
  std::uint64_t begin;
  // Relaxed: nothing but the number is shared.
  do {
    begin = std::max(free, now_ps);
  } while (!free_ps_.compare_exchange_weak(free, begin + cost_ps, std::memory_order_relaxed));
  return begin;
}

std::uint64_t DrivePacer::end_ns(Opcode opcode, std::uint64_t ps) const {
  const std::uint64_t latency =
      opcode == Opcode::kRead ? profile_.read_latency_ns : profile_.write_latency_ns;
  return start_ns_ + ps / 1000 + latency;
}

}  // namespace bamquery
