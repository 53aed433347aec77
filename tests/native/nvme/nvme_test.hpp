// What tests of the NVMe driver share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "driver/native/errors.hpp"
#include "driver/native/nvme/nvme_drive.hpp"
#include "driver/native/queues/queue_memory.hpp"
#include "tests/native/check.hpp"
#include "tests/native/nvme/fake_nvme.hpp"

namespace bamquery::test {

inline constexpr std::uint64_t kMillisecond = 1'000'000;
inline constexpr std::uint64_t kLong = 20'000 * kMillisecond;

inline std::shared_ptr<NvmeDrive> open(FakeNvme& fake, bool writable = true, std::uint64_t timeout = kLong) {
  return NvmeDrive::open(fake.device(), {.writable = writable, .command_timeout_ns = timeout});
}

/// What an action's StorageError says; nothing if there was none.
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const StorageError& error) {
    return error.what();
  }
  return "";
}

/// The status of an action's NvmeError; kSuccess if there was none.
inline Status status_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const NvmeError& error) {
    return error.status();
  }
  return status::kSuccess;
}

inline bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void test_addresses();
void test_identify();
void test_life();
void test_dead_drives();
void test_commands();
void test_doorbells();
void test_resets();
void test_fuzz(std::uint32_t seed);
void test_sysfs(const std::string& folder);
void test_exits();

}  // namespace bamquery::test
