#include "driver/native/nvme/nvme_drive.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "driver/native/errors.hpp"
#include "driver/native/nvme/bring_up.hpp"
#include "driver/native/nvme/live_drives.hpp"
#include "driver/native/status_text.hpp"

namespace bamquery {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kEndNs = 5 * kSecond;
// Where a drive has no limit of its own: a slot's PRP list is a page.
constexpr std::uint32_t kMostTransferBytes = 2u << 20;
constexpr std::uint32_t kMostDepth = 65536;
constexpr std::uint32_t kMostNamespaces = 1024;  // that are looked at

double seconds_since(std::uint64_t ns) { return static_cast<double>(now_ns() - ns) * 1e-9; }

std::span<std::byte> checked_registers(const NvmeDevice& device) {
  const std::span<std::byte> bar = device.registers();
  if (bar.size() < kDoorbellsOffset + 4096) {
    throw StorageError(device.name(), device.name() + ": BAR0 has " + std::to_string(bar.size()) +
                                          " bytes; an NVMe controller has at least 8192");
  }
  return bar;
}

}  // namespace

std::shared_ptr<NvmeDrive> NvmeDrive::open(std::unique_ptr<NvmeDevice> device, const DriveOptions& options) {
  std::shared_ptr<NvmeDrive> drive(new NvmeDrive(std::move(device), options));
  drive->open();
  return drive;
}

NvmeDrive::NvmeDrive(std::unique_ptr<NvmeDevice> device, const DriveOptions& options)
    : options_(options),
      device_(std::move(device)),
      registers_(checked_registers(*device_)),
      space_(*device_),
      admin_(registers_, space_, device_->name()) {}

NvmeDrive::~NvmeDrive() {
  LiveDrives::of_process().remove(*this);
  shut_down(Deadline::in(kEndNs));
}

void NvmeDrive::open() {
  const std::lock_guard lock(mutex_);
  if (registers_.status().gone()) {
    throw NvmeError(name(), name() + ": its registers read as ones: the drive is gone, or asleep", 0, 0,
                    status::kQueueBroken);
  }
  const std::uint64_t begin = now_ns();
  // A former owner may have left it running, with rings in memory that is not ours. It reaches nothing as
  // long as it may not master the bus.
  device_->set_bus_master(false);
  const std::uint64_t patience = ready_timeout_ns(registers_);
  if (!disable_controller(registers_, Deadline::in(patience))) {
    device_->reset();
    if (!disable_controller(registers_, Deadline::in(patience))) {
      ended_ = true;  // no more can be done at its end
      throw NvmeError(name(), name() + ": the drive stays ready though it was disabled and reset", 0, 0,
                      status::kDeadlineMissed);
    }
  }
  device_->set_bus_master(true);
  LiveDrives::of_process().add(*this);
  enable();
  identify();
  set_limits();
  find_namespaces();
  bring_up_seconds_ = seconds_since(begin);
}

void NvmeDrive::enable() {
  enable_controller(registers_, admin_, name());
  ready_ = true;
  admin_.await_events();
}

void NvmeDrive::require_success(const AdminCommand& command, const char* what) {
  const AdminQueue::Answer answer = ask(command);
  if (answer.status.ok()) return;
  throw NvmeError(name(), name() + ": " + what + " failed: " + status_text(answer.status), command.nsid, 0,
                  answer.status);
}

void NvmeDrive::identify() {
  version_ = registers_.read(ControllerRegister::kVersion);
  const AdminQueue::Answer answer =
      admin_.execute([](std::uint64_t page) { return admin::identify(IdentifyWhat::kController, 0, page); },
                     Deadline::in(options_.command_timeout_ns),
                     [this](std::span<const std::byte> page) { identity_ = ControllerData::parse(page); });
  if (!answer.status.ok()) {
    throw NvmeError(name(), name() + ": identify failed: " + status_text(answer.status), 0, 0, answer.status);
  }
  if (!identity_.refusal.empty()) throw StorageError(name(), name() + ": " + identity_.refusal);
  volatile_cache_ = identity_.has_volatile_cache;
  if (!volatile_cache_) return;
  // It may have been switched off.
  const AdminQueue::Answer feature = ask(admin::get_feature(Feature::kVolatileWriteCache));
  if (feature.status.ok()) volatile_cache_ = (feature.result & 1) != 0;
}

void NvmeDrive::set_limits() {
  const Capabilities capabilities = registers_.capabilities();
  limits_.doorbell_stride = capabilities.doorbell_stride();
  limits_.needs_contiguous_queues = capabilities.needs_contiguous_queues();
  limits_.has_memory_buffer = capabilities.has_memory_buffer();
  limits_.ready_timeout_ns = ready_timeout_ns(registers_);
  limits_.queue_depth = std::bit_floor(std::min(capabilities.most_entries(), kMostDepth));
  if (limits_.queue_depth < 2) {
    throw StorageError(name(),
                       name() + ": its queues may have one entry only (CAP.MQES), where two are the least");
  }
  // 0 is no limit; beyond ours, the number does not matter.
  const std::uint32_t shift = identity_.transfer_shift;
  limits_.transfer_bytes = shift == 0 || shift >= 9 ? kMostTransferBytes : 4096u << shift;
  limits_.has_shadow_doorbells = identity_.has_doorbell_buffers;

  // What it has doorbells for.
  const auto doorbell_pair = std::size_t{8} << limits_.doorbell_stride;
  const auto most = static_cast<std::uint32_t>(
      std::min<std::size_t>(registers_.doorbell_bytes() / doorbell_pair, 65535) - 1);
  const std::uint32_t wanted = std::clamp(options_.queue_pairs, 1u, 65534u);
  const AdminQueue::Answer answer = ask(admin::set_queue_count(wanted));
  if (!answer.status.ok()) {
    throw NvmeError(name(), name() + ": the drive gives no queues: " + status_text(answer.status), 0, 0,
                    answer.status);
  }
  const std::uint32_t granted = std::min(answer.result & 0xffff, answer.result >> 16) + 1;
  limits_.queue_pairs = std::min({granted, wanted, most});
  if (limits_.queue_pairs == 0) {
    throw StorageError(name(), name() + ": BAR0 has no room for doorbells of a queue pair");
  }
  taken_.assign(limits_.queue_pairs + 1, false);
  taken_[0] = true;  // the admin queue
}

NamespaceData NvmeDrive::find_namespace(std::uint32_t nsid) {
  const Deadline deadline = Deadline::in(options_.command_timeout_ns);
  // Before 1.3 there are no descriptors, and one command set.
  std::uint8_t set = 0;
  if (version_ >= 0x00010300) {
    admin_.execute(
        [nsid](std::uint64_t page) { return admin::identify(IdentifyWhat::kDescriptors, nsid, page); },
        deadline, [&](std::span<const std::byte> page) { set = command_set(page); });
  }
  NamespaceData found;
  found.nsid = nsid;
  if (set != 0) {
    found.refusal = "it is of command set " + std::to_string(set) + ", not NVM";
    return found;
  }
  const AdminQueue::Answer answer = admin_.execute(
      [nsid](std::uint64_t page) { return admin::identify(IdentifyWhat::kNamespace, nsid, page); }, deadline,
      [&](std::span<const std::byte> page) { found = NamespaceData::parse(nsid, page); });
  if (!answer.status.ok()) found.refusal = "the drive does not say what it is: " + status_text(answer.status);
  return found;
}

void NvmeDrive::find_namespaces() {
  std::vector<std::uint32_t> numbers;
  bool lists = true;
  for (std::uint32_t after = 0; lists && numbers.size() < kMostNamespaces;) {
    std::vector<std::uint32_t> more;
    const AdminQueue::Answer answer = admin_.execute(
        [after](std::uint64_t page) { return admin::identify(IdentifyWhat::kActiveNamespaces, after, page); },
        Deadline::in(options_.command_timeout_ns),
        [&](std::span<const std::byte> page) { more = namespace_numbers(page, after); });
    if (!answer.status.ok()) lists = false;  // 1.0 knows no lists: all numbers are tried
    if (more.empty()) break;
    after = more.back();
    numbers.insert(numbers.end(), more.begin(), more.end());
  }
  if (!lists) {
    numbers.clear();
    for (std::uint32_t nsid = 1; nsid <= std::min(identity_.namespace_count, kMostNamespaces); ++nsid) {
      numbers.push_back(nsid);
    }
  }
  numbers.resize(std::min<std::size_t>(numbers.size(), kMostNamespaces));
  for (const std::uint32_t nsid : numbers) {
    NamespaceData found = find_namespace(nsid);
    if (lists || found.blocks != 0) namespaces_.push_back(std::move(found));
  }
}

std::uint16_t NvmeDrive::take_queues(std::uint32_t count) {
  const std::lock_guard lock(mutex_);
  const auto first = std::search_n(taken_.begin(), taken_.end(), static_cast<std::ptrdiff_t>(count), false);
  if (first == taken_.end() || count == 0) {
    const auto used = std::count(taken_.begin() + 1, taken_.end(), true);
    throw StorageError(name(), name() + ": " + std::to_string(count) +
                                   " queue pairs are wanted; the drive has " +
                                   std::to_string(limits_.queue_pairs) + ", of which " +
                                   std::to_string(used) + " are in use");
  }
  std::fill_n(first, count, true);
  return static_cast<std::uint16_t>(first - taken_.begin());
}

void NvmeDrive::give_back_queues(std::uint16_t first, std::uint32_t count) {
  const std::lock_guard lock(mutex_);
  std::fill_n(taken_.begin() + first, count, false);
}

void NvmeDrive::create_queues(std::uint16_t queue, std::uint32_t depth, std::uint64_t submissions,
                              std::uint64_t completions) {
  const std::lock_guard lock(mutex_);
  if (shadows_ != nullptr) shadows_->forget(queue);
  require_success(admin::create_completions(queue, depth, completions), "creating a completion queue");
  created_.insert(queue);  // for a reset it is one, even if what follows fails
  const AdminQueue::Answer answer = ask(admin::create_submissions(queue, depth, submissions));
  if (answer.status.ok()) return;
  ask(admin::delete_completions(queue));
  created_.erase(queue);
  throw NvmeError(name(), name() + ": creating a submission queue failed: " + status_text(answer.status), 0,
                  0, answer.status);
}

bool NvmeDrive::delete_queues(std::uint16_t queue, Deadline deadline) {
  const std::lock_guard lock(mutex_);
  if (!created_.contains(queue)) return true;
  deadline = sooner(deadline);
  try {
    // First the submission queue: its commands complete, or are aborted.
    if (!admin_.execute(admin::delete_submissions(queue), deadline).status.ok()) return false;
    if (!admin_.execute(admin::delete_completions(queue), deadline).status.ok()) return false;
  } catch (const NvmeError&) {
    return false;
  }
  created_.erase(queue);
  return true;
}

// With mutex_. False as soon as one cannot be deleted.
bool NvmeDrive::delete_submissions(Deadline deadline) {
  for (const std::uint16_t queue : created_) {
    if (admin_.stuck()) return false;
    try {
      admin_.execute(admin::delete_submissions(queue), sooner(deadline));
    } catch (const NvmeError&) {
      return false;
    }
  }
  return true;
}

// With mutex_.
bool NvmeDrive::disable(Deadline deadline) {
  // What is in flight ends first, where the drive still does that: QEMU crashes if it is disabled under load.
  const std::uint64_t half = now_ns() + (deadline.at_ns - std::min(deadline.at_ns, now_ns())) / 2;
  delete_submissions(Deadline{half});
  if (!disable_controller(registers_, deadline)) {
    // Whatever state it is in, the bus and the function's reset are not the controller's business.
    device_->set_bus_master(false);
    if (!device_->reset() || registers_.status().ready()) return false;
    device_->set_bus_master(true);
  }
  created_.clear();
  ready_ = false;
  ++generation_;
  return true;
}

bool NvmeDrive::reset(Deadline deadline) {
  const std::lock_guard lock(mutex_);
  if (!ready_) return true;
  ++resets_;
  return disable(deadline);
}

void NvmeDrive::make_ready() {
  const std::lock_guard lock(mutex_);
  if (ended_) throw StorageError(name(), name() + ": the drive was shut down");
  if (ready_ && !admin_.stuck()) return;
  const std::uint64_t begin = now_ns();
  if (ready_) {
    ++resets_;
    if (!disable(Deadline::in(limits_.ready_timeout_ns))) {
      throw NvmeError(name(), name() + ": the drive cannot be disabled", 0, 0, status::kDeadlineMissed);
    }
  }
  enable();
  // Neither the number of queues nor doorbells in memory outlive a reset.
  require_success(admin::set_queue_count(limits_.queue_pairs), "asking for queues");
  if (shadows_ != nullptr) {
    shadows_->clear();
    admin_.use_doorbells(limits_.doorbell_stride, shadows_->doorbells());
    require_success(admin::doorbell_buffers(shadows_->values(), shadows_->events()),
                    "using doorbells in memory");
  }
  bring_up_seconds_ = seconds_since(begin);
}

std::uint64_t NvmeDrive::generation() const {
  const std::lock_guard lock(mutex_);
  return generation_;
}

ShadowDoorbells* NvmeDrive::use_shadow_doorbells() {
  const std::lock_guard lock(mutex_);
  if (shadows_ != nullptr) return shadows_.get();
  if (!limits_.has_shadow_doorbells || !created_.empty()) return nullptr;
  auto made = std::make_unique<ShadowDoorbells>(space_, limits_.doorbell_stride);
  admin_.use_doorbells(limits_.doorbell_stride, made->doorbells());
  bool accepted = false;
  try {
    accepted = ask(admin::doorbell_buffers(made->values(), made->events())).status.ok();
  } catch (...) {
    admin_.use_doorbells(limits_.doorbell_stride, nullptr);
    throw;
  }
  if (accepted) {
    shadows_ = std::move(made);
  } else {
    admin_.use_doorbells(limits_.doorbell_stride, nullptr);
  }
  return shadows_.get();
}

ShadowDoorbells* NvmeDrive::shadow_doorbells() const {
  const std::lock_guard lock(mutex_);
  return shadows_.get();
}

DriveStatistics NvmeDrive::statistics() {
  const std::lock_guard lock(mutex_);
  if (ready_ && !ended_) {
    try {
      admin_.acknowledge_events(Deadline::in(options_.command_timeout_ns));
    } catch (const NvmeError&) {
      // It is counted as missed; whoever needs the drive next hears of it.
    }
  }
  return {admin_.counts(), resets_, registers_.writes(), bring_up_seconds_, admin_.last_event()};
}

void NvmeDrive::shut_down(Deadline deadline) noexcept {
  if (!process_.is_ours()) return;
  std::unique_lock lock(mutex_, std::defer_lock);
  // At an exit another thread may be at it for ever.
  while (!lock.try_lock()) {
    if (deadline.passed()) return;
    pause(100);
  }
  if (std::exchange(ended_, true)) return;
  try {
    if (ready_) {
      delete_submissions(deadline);
      shut_down_controller(registers_, deadline);
    }
    disable_controller(registers_, deadline);
    device_->set_bus_master(false);
  } catch (...) {
    // The device's end takes its access to memory away, however it behaved.
  }
  ready_ = false;
  created_.clear();
  ++generation_;
}

}  // namespace bamquery
