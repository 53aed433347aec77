// Controller registers of a drive by name (NVM Express Base Specification 2.0, 3.1.3).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace bamquery {

/// Byte offsets in BAR0 (figure 35). Registers of 64 bits are read and written as two of 32.
enum class ControllerRegister : std::uint32_t {
  kCapabilities = 0x00,       ///< CAP, 64 bits (figure 36).
  kVersion = 0x08,            ///< VS (figure 37).
  kInterruptMaskSet = 0x0c,   ///< INTMS
  kConfiguration = 0x14,      ///< CC (figure 46).
  kStatus = 0x1c,             ///< CSTS (figure 47).
  kAdminQueueSizes = 0x24,    ///< AQA: entries less one, SQ in bits 11:0, CQ in 27:16.
  kAdminSubmissions = 0x28,   ///< ASQ, 64 bits.
  kAdminCompletions = 0x30,   ///< ACQ, 64 bits.
  kBufferLocation = 0x38,     ///< CMBLOC
  kBufferSize = 0x3c,         ///< CMBSZ
  kBufferMemorySpace = 0x50,  ///< CMBMSC, 64 bits.
  kReadyTimeouts = 0x68,      ///< CRTO: CRWMT in bits 15:0, CRIMT in 31:16, of 500 ms.
};

/// Where doorbells begin (NVMe over PCIe transport specification 1.0, 3.1.2).
inline constexpr std::size_t kDoorbellsOffset = 0x1000;

/// CAP
struct Capabilities {
  std::uint64_t word;

  constexpr std::uint32_t most_entries() const {
    return static_cast<std::uint32_t>(word & 0xffff) + 1;
  }  // MQES
  constexpr bool needs_contiguous_queues() const { return (word >> 16 & 1) != 0; }                 // CQR
  constexpr std::uint64_t ready_timeout_ns() const { return (word >> 24 & 0xff) * 500'000'000u; }  // TO
  constexpr std::uint32_t doorbell_stride() const { return word >> 32 & 0xf; }                     // DSTRD
  constexpr bool has_nvm_commands() const { return (word >> 37 & 1) != 0; }             // CSS bit 0
  constexpr bool has_command_sets() const { return (word >> 43 & 1) != 0; }             // CSS bit 6
  constexpr std::uint32_t least_page_shift() const { return 12 + (word >> 48 & 0xf); }  // MPSMIN
  constexpr bool has_memory_buffer() const { return (word >> 57 & 1) != 0; }            // CMBS
  constexpr bool has_ready_timeouts() const { return (word >> 59 & 3) != 0; }           // CRMS
};

/// CSTS
struct ControllerStatus {
  std::uint32_t word;

  constexpr bool ready() const { return (word & 1) != 0; }           // RDY
  constexpr bool fatal() const { return (word >> 1 & 1) != 0; }      // CFS
  constexpr bool shut_down() const { return (word >> 2 & 3) == 2; }  // SHST
  constexpr bool gone() const { return word == 0xffffffffu; }        // what an absent device reads as
};

/// CC: what this driver sets.
namespace configuration {

inline constexpr std::uint32_t kEnable = 1u << 0;                  // EN
inline constexpr std::uint32_t kAllCommandSets = 6u << 4;          // CSS; 0: NVM commands
inline constexpr std::uint32_t kShutdownMask = 3u << 14;           // SHN
inline constexpr std::uint32_t kNormalShutdown = 1u << 14;         // SHN
inline constexpr std::uint32_t kEntrySizes = 6u << 16 | 4u << 20;  // IOSQES, IOCQES: 64 and 16 bytes
// MPS is 0: pages of 4,096 bytes. AMS is 0: queues take turns.

}  // namespace configuration

/// BAR0 as mapped here. Accesses are of 32 bits, happen once each, and order what this thread did before a
/// write ahead of it.
class Registers {
 public:
  explicit Registers(std::span<std::byte> bar) : bar_(bar) {}

  std::uint32_t read(ControllerRegister which) const { return load(offset(which)); }
  std::uint64_t read_wide(ControllerRegister which) const {
    return load(offset(which)) | static_cast<std::uint64_t>(load(offset(which) + 4)) << 32;
  }
  void write(ControllerRegister which, std::uint32_t value) { store(offset(which), value); }
  /// High half first: some controllers act on the low one.
  void write_wide(ControllerRegister which, std::uint64_t value) {
    store(offset(which) + 4, static_cast<std::uint32_t>(value >> 32));
    store(offset(which), static_cast<std::uint32_t>(value));
  }

  Capabilities capabilities() const { return {read_wide(ControllerRegister::kCapabilities)}; }
  ControllerStatus status() const { return {read(ControllerRegister::kStatus)}; }

  /// `offset` is from where doorbells begin.
  void ring(std::uint32_t offset, std::uint32_t value) { store(kDoorbellsOffset + offset, value); }
  std::byte* doorbells() const { return bar_.data() + kDoorbellsOffset; }
  std::size_t doorbell_bytes() const { return bar_.size() - kDoorbellsOffset; }

  /// How often this object wrote a register, doorbells included.
  std::uint64_t writes() const { return writes_.load(std::memory_order_relaxed); }

  /// For who must not count, as in a signal's handler.
  volatile std::uint32_t* address(ControllerRegister which) const { return word(offset(which)); }

 private:
  static constexpr std::size_t offset(ControllerRegister which) { return static_cast<std::size_t>(which); }
  volatile std::uint32_t* word(std::size_t at) const {
    return reinterpret_cast<volatile std::uint32_t*>(bar_.data() + at);
  }
  std::uint32_t load(std::size_t at) const { return __atomic_load_n(word(at), __ATOMIC_ACQUIRE); }
  void store(std::size_t at, std::uint32_t value) {
    // Release: entries are in memory before a doorbell tells of them, queues before their addresses. Stores
    // of one x86 processor are seen in order by devices as well; elsewhere that takes a barrier for devices.
#if defined(__aarch64__)
    asm volatile("dmb oshst" ::: "memory");
#endif
    __atomic_store_n(word(at), value, __ATOMIC_RELEASE);
    writes_.fetch_add(1, std::memory_order_relaxed);  // A statistic.
  }

  std::span<std::byte> bar_;
  std::atomic<std::uint64_t> writes_{0};
};

}  // namespace bamquery
