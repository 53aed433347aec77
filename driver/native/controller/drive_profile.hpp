// Drives that a software controller imitates: their latency, their commands and bytes a second.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "driver/core/nvme.hpp"

namespace bamquery {

/// One drive. Small commands are bound by commands a second, large ones by bytes a second.
struct DriveProfile {
  std::string name;
  std::uint64_t read_latency_ns;  ///< Of a lone 4 KiB read.
  std::uint64_t write_latency_ns;
  double read_commands;  ///< A second.
  double write_commands;
  double read_bytes;  ///< A second.
  double write_bytes;
};

/// The drives of the BaM paper (Qureshi et al., "GPU-Initiated On-Demand High-Throughput Storage Access in
/// the BaM System Architecture", ASPLOS 2023), from which come their read latencies of 11, 25 and 324 us and
/// their commands a second at 512 B and 4 KiB. Those numbers were taken down from memory of the paper's table
/// of drives, not from the page. Bytes a second are 4 KiB times commands a second there, or the sequential
/// rate of the vendor's data sheet where that is more; write figures are the data sheets', from memory as
/// well.
std::span<const DriveProfile> drive_profiles();

/// When the commands of a number of equal drives end. Shared by all threads of a controller.
class DrivePacer {
 public:
  DrivePacer(DriveProfile profile, std::uint32_t drives);

  const DriveProfile& profile() const { return profile_; }
  std::uint32_t drives() const { return drives_; }

  /// How long the drives are busy with a command, in picoseconds: at ten drives it is a few nanoseconds.
  std::uint64_t cost_ps(Opcode opcode, std::uint64_t bytes) const;

  /// Takes the drives for so long; returns from when on, in picoseconds since the pacer was made.
  std::uint64_t reserve(std::uint64_t now_ns, std::uint64_t cost_ps);

  /// When a command ends whose turn at the drives ends at `ps`.
  std::uint64_t end_ns(Opcode opcode, std::uint64_t ps) const;

 private:
  DriveProfile profile_;
  std::uint32_t drives_;
  std::uint64_t start_ns_;
  std::atomic<std::uint64_t> free_ps_{0};  ///< When the drives have done all that they were given.
};

}  // namespace bamquery
