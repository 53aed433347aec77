#include "tests/native/nvme/fake_nvme.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "driver/core/atomics.hpp"
#include "driver/native/nvme/registers.hpp"
#include "driver/native/nvme/shadow_doorbells.hpp"
#include "tests/native/check.hpp"

namespace bamquery::test {
namespace {

constexpr std::uint32_t kUnwritten = 0xffffffffu;

template <typename T>
void put(std::span<std::byte> page, std::size_t at, T value) {
  std::memcpy(page.subspan(at, sizeof value).data(), &value, sizeof value);
}

void put_text(std::span<std::byte> page, std::size_t at, std::size_t size, const char* text) {
  for (std::size_t i = 0; i < size; ++i) page[at + i] = static_cast<std::byte>(*text != 0 ? *text++ : ' ');
}

}  // namespace

class FakeDevice final : public NvmeDevice {
 public:
  FakeDevice(FakeNvme& fake, std::string name) : fake_(fake), name_(std::move(name)) {}
  ~FakeDevice() override {
    if (!process_.is_ours()) return;  // a child's copies of files are not the last ones
    const std::lock_guard lock(fake_.mutex_);
    fake_.mappings_.clear();
    fake_.bus_master_ = false;
  }

  const std::string& name() const override { return name_; }
  std::string interface() const override { return "a thread"; }
  std::span<std::byte> registers() const override { return {fake_.bar_, fake_.options_.bar_bytes}; }
  std::vector<IovaRange> iova_ranges() const override { return fake_.options_.ranges; }
  void map_dma(std::span<std::byte> pages, std::uint64_t iova, QueueAccess access) override {
    const std::lock_guard lock(fake_.mutex_);
    CHECK(iova % 4096 == 0 && pages.size() % 4096 == 0 && !pages.empty());
    fake_.mappings_[iova] = {pages.data(), pages.size(), access};
  }
  bool unmap_dma(std::uint64_t iova, std::uint64_t bytes) noexcept override {
    ++fake_.unmapped;
    const std::lock_guard lock(fake_.mutex_);
    auto at = fake_.mappings_.lower_bound(iova);
    while (at != fake_.mappings_.end() && at->first < iova + bytes) at = fake_.mappings_.erase(at);
    return true;
  }
  void set_bus_master(bool on) override {
    const std::lock_guard lock(fake_.mutex_);
    fake_.bus_master_ = on;
  }
  bool reset() noexcept override {
    if (fake_.faults.has_no_reset || fake_.gone_) return false;
    fake_.reset_.store(true);
    while (fake_.reset_.load()) std::this_thread::yield();
    return true;
  }

 private:
  OwnProcess process_;
  FakeNvme& fake_;
  std::string name_;
};

FakeNvme::FakeNvme(FakeOptions options, std::uint32_t seed)
    : options_(std::move(options)),
      random_(seed),
      bar_(options_.bar != nullptr ? options_.bar
                                   : static_cast<std::byte*>(std::aligned_alloc(4096, options_.bar_bytes))),
      queues_(options_.queue_pairs + 1) {
  std::memset(bar_, 0, kDoorbellsOffset);
  std::memset(bar_ + kDoorbellsOffset, 0xff, options_.bar_bytes - kDoorbellsOffset);
  set_register(0, (options_.most_entries - 1) | 1u << 16 | std::uint32_t{options_.ready_timeout} << 24);
  set_register(4, options_.stride | 1u << 5);
  set_register(8, 0x00010400);
  for (const FakeNamespace& each : options_.namespaces) contents.emplace_back(each.blocks * each.block_bytes);
  thread_ = std::thread([this] { run(); });
}

FakeNvme::~FakeNvme() {
  stop_.store(true);
  thread_.join();
  if (options_.bar == nullptr) std::free(bar_);
}

std::unique_ptr<NvmeDevice> FakeNvme::device(const std::string& name) {
  return std::make_unique<FakeDevice>(*this, name);
}

std::size_t FakeNvme::mappings() const {
  const std::lock_guard lock(mutex_);
  return mappings_.size();
}

void FakeNvme::pull_out() {
  gone_.store(true);
  while (register_at(0x1c) != 0xffffffffu) std::this_thread::yield();
}

void FakeNvme::leave_running() {
  set_register(0x24, 31u << 16 | 31);
  set_register(0x28, 0x10000);
  set_register(0x30, 0x20000);
  set_register(0x14, configuration::kEntrySizes | configuration::kEnable);
  while (!ready()) std::this_thread::yield();
}

std::byte* FakeNvme::reach(std::uint64_t iova, std::uint64_t bytes, bool to_write) {
  const std::lock_guard lock(mutex_);
  auto at = mappings_.upper_bound(iova);
  if (bus_master_ && at != mappings_.begin()) {
    const auto& [first, mapping] = *--at;
    const bool allowed = mapping.access == QueueAccess::kReadsAndWrites ||
                         (mapping.access == QueueAccess::kWrites) == to_write;
    if (allowed && iova - first <= mapping.bytes && bytes <= mapping.bytes - (iova - first)) {
      return mapping.at + (iova - first);
    }
  }
  ++blocked;
  return nullptr;
}

// A doorbell's value if it was written since the last look.
std::optional<std::uint32_t> FakeNvme::written(std::uint32_t offset) {
  auto* const word = reinterpret_cast<std::uint32_t*>(bar_ + kDoorbellsOffset + offset);
  if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == kUnwritten) return std::nullopt;
  return __atomic_exchange_n(word, kUnwritten, __ATOMIC_ACQ_REL);
}

void FakeNvme::run() {
  for (std::uint32_t looks = 0; !stop_.load(); ++looks) {
    if (gone_.load()) {
      for (std::size_t at = 0; at < 0x1000; at += 4) set_register(at, 0xffffffffu);
      std::this_thread::yield();
      continue;
    }
    if (reset_.load()) {
      faults.stays_ready.store(false);
      set_register(0x14, 0);
      set_register(0x1c, 0);
      enabled_ = false;
      forget_queues();
      ++resets;
      reset_.store(false);
    }
    look_at_configuration();
    if (!enabled_) {
      settle_held();
      std::this_thread::yield();
      continue;
    }
    for (std::uint32_t number = 0; number < queues_.size(); ++number) {
      if (queues_[number].depth != 0) look_at_queue(number);
    }
    settle_held();
    if (const std::uint32_t event = event_.load(); event != 0 && event_id_) {
      event_.store(0);
      answer(0, *std::exchange(event_id_, std::nullopt), status::kSuccess, event);
    }
    std::this_thread::yield();
  }
}

void FakeNvme::look_at_configuration() {
  const std::uint32_t configuration = register_at(0x14);
  const bool enable = (configuration & 1) != 0;
  if (enable && !enabled_) {
    if (faults.never_ready) return;
    if (faults.fatal_when_enabled) return set_register(0x1c, 2);
    CHECK((configuration >> 7 & 0xf) == 0 && (configuration >> 16 & 0xf) == 6 &&
          (configuration >> 20 & 0xf) == 4);
    Queue& admin = queues_[0];
    admin = {};
    admin.depth = (register_at(0x24) >> 16 & 0xfff) + 1;
    admin.submission_depth = (register_at(0x24) & 0xfff) + 1;
    admin.submissions = register_at(0x28) | std::uint64_t{register_at(0x2c)} << 32;
    admin.completions = register_at(0x30) | std::uint64_t{register_at(0x34)} << 32;
    enabled_ = true;
    set_register(0x1c, 1);
  } else if (!enable && (register_at(0x1c) & 3) != 0 && !faults.stays_ready) {
    enabled_ = false;
    forget_queues();
    set_register(0x1c, 0);
  }
  if ((configuration >> 14 & 3) != 0 && (register_at(0x1c) >> 2 & 3) == 0) {
    ++shutdowns;
    set_register(0x1c, register_at(0x1c) | 2u << 2);
  }
}

void FakeNvme::forget_queues() {
  for (Queue& queue : queues_) {
    if (faults.forgets_to_abort) zombies_.insert(zombies_.end(), queue.held.begin(), queue.held.end());
    held -= queue.held.size();
    queue = {};
  }
  shadows_ = events_ = 0;
  event_id_.reset();
  for (std::size_t at = kDoorbellsOffset; at < options_.bar_bytes; at += 4) set_register(at, kUnwritten);
}

// What is held after all, or lands though nobody waits for it any more.
void FakeNvme::settle_held() {
  if (!release_.load()) return;
  for (const SubmissionEntry& entry : zombies_) execute(entry);
  zombies_.clear();
  for (std::uint32_t number = 1; number < queues_.size(); ++number) {
    for (const SubmissionEntry& entry : queues_[number].held)
      answer(number, entry.command_id, execute(entry));
    held -= queues_[number].held.size();
    queues_[number].held.clear();
  }
}

void FakeNvme::look_at_queue(std::uint32_t number) {
  Queue& queue = queues_[number];
  const std::uint32_t tail_offset = tail_doorbell_offset(number, options_.stride);
  const std::uint32_t head_offset = head_doorbell_offset(number, options_.stride);
  const auto tail = written(tail_offset), head = written(head_offset);
  if (number != 0) doorbell_writes += (tail ? 1u : 0u) + (head ? 1u : 0u);
  if (tail) queue.tail = *tail;
  if (head) queue.consumed = *head;
  queue.awake |= tail.has_value() || head.has_value();
  if (shadows_ != 0) {         // for the admin queue, too, as QEMU does
    if (!queue.awake) return;  // as a controller that sleeps until it is told
    for (const bool is_tail : {true, false}) {
      const std::uint32_t offset = is_tail ? tail_offset : head_offset;
      std::byte* const shadow = reach(shadows_ + offset, 4, false);
      std::byte* const event = reach(events_ + offset, 4, true);
      if (shadow == nullptr || event == nullptr) return;
      const AtomicRef<std::uint32_t, Scope::kSystem> wanted(*reinterpret_cast<std::uint32_t*>(event));
      const AtomicRef<std::uint32_t, Scope::kSystem> value(*reinterpret_cast<std::uint32_t*>(shadow));
      std::uint32_t& known = is_tail ? queue.tail : queue.consumed;
      wanted.store(known, kRelease);
      fence_shadows();
      known = value.load(kAcquire);
    }
    if (queue.head == queue.tail && queue.answers.empty()) queue.awake = false;
  }
  fetch(number);
  post(number);
}

void FakeNvme::fetch(std::uint32_t number) {
  Queue& queue = queues_[number];
  while (queue.submission_depth != 0 && queue.head != queue.tail % queue.submission_depth) {
    std::byte* const at =
        reach(queue.submissions + queue.head * sizeof(SubmissionEntry), sizeof(SubmissionEntry), false);
    if (at == nullptr) return set_register(0x1c, register_at(0x1c) | 2);
    SubmissionEntry entry;
    std::memcpy(&entry, at, sizeof entry);
    queue.head = (queue.head + 1) % queue.submission_depth;
    if (number == 0) {
      if (!faults.mute_admin) execute_admin(entry);
    } else if (faults.mute) {
      queue.held.push_back(entry);
      ++held;
    } else {
      answer(number, entry.command_id, execute(entry));
    }
  }
}

void FakeNvme::answer(std::uint32_t number, std::uint16_t id, Status status, std::uint32_t result) {
  queues_[number].answers.push_back({id, {status, result}});
}

void FakeNvme::post(std::uint32_t number) {
  Queue& queue = queues_[number];
  while (!queue.answers.empty() && (queue.posted + 1) % queue.depth != queue.consumed) {
    const auto [id, how] = queue.answers.front();
    queue.answers.pop_front();
    const std::uint32_t place = queue.posted % queue.depth;
    std::byte* const at =
        reach(queue.completions + place * sizeof(CompletionEntry), sizeof(CompletionEntry), true);
    if (at == nullptr) return set_register(0x1c, register_at(0x1c) | 2);
    auto& entry = *reinterpret_cast<CompletionEntry*>(at);
    entry.result = how.second;
    Outcome outcome =
        Outcome::make(static_cast<std::uint16_t>(queue.head), static_cast<std::uint16_t>(number), id,
                      queue.posted / queue.depth % 2 == 0, how.first);
    const bool fuzz = number == 0 ? faults.fuzz_admin.load() : faults.fuzz_io.load() && random_() % 8 == 0;
    if (fuzz) {
      // The phase stays: without it there would be no completion.
      const std::uint64_t phase = outcome.word & 1ull << 48;
      const std::uint64_t mask = random_() % 2 == 0 ? ~0ull : 0xffffull << 16 * (random_() % 4);
      outcome.word ^= (static_cast<std::uint64_t>(random_()) << 32 | random_()) & mask;
      outcome.word = (outcome.word & ~(1ull << 48)) | phase;
    }
    AtomicRef<std::uint64_t, Scope::kSystem>(entry.outcome).store(outcome.word, kRelease);
    queue.posted = (queue.posted + 1) % (2 * queue.depth);
  }
}

void FakeNvme::execute_admin(const SubmissionEntry& entry) {
  const auto dword10 = static_cast<std::uint32_t>(entry.lba),
             dword11 = static_cast<std::uint32_t>(entry.lba >> 32);
  const std::uint32_t number = dword10 & 0xffff, depth = (dword10 >> 16) + 1;
  const auto say = [&](Status status, std::uint32_t result = 0) {
    answer(0, entry.command_id, status, result);
  };
  switch (entry.opcode) {
    case 0x05: {  // create a completion queue
      if (number == 0 || number >= queues_.size() || queues_[number].depth != 0) return say({0x101});
      if (depth > options_.most_entries || depth < 2) return say({0x102});
      queues_[number] = {};
      queues_[number].completions = entry.prp1;
      queues_[number].depth = depth;
      return say(status::kSuccess);
    }
    case 0x01: {  // create a submission queue
      if (number == 0 || number >= queues_.size()) return say({0x101});
      if (queues_[number].depth == 0 || dword11 >> 16 != number) return say({0x100});
      if (queues_[number].submission_depth != 0) return say({0x101});
      queues_[number].submissions = entry.prp1;
      queues_[number].submission_depth = depth;
      return say(status::kSuccess);
    }
    case 0x00: {  // delete a submission queue
      if (number == 0 || number >= queues_.size() || queues_[number].submission_depth == 0)
        return say({0x101});
      Queue& queue = queues_[number];
      for (const SubmissionEntry& each : queue.held) answer(number, each.command_id, status::kQueueDeleted);
      if (faults.forgets_to_abort) zombies_.insert(zombies_.end(), queue.held.begin(), queue.held.end());
      held -= queue.held.size();
      queue.held.clear();
      post(number);
      queue.submission_depth = queue.head = queue.tail = 0;
      return say(status::kSuccess);
    }
    case 0x04: {  // delete a completion queue
      if (number == 0 || number >= queues_.size() || queues_[number].depth == 0) return say({0x101});
      if (queues_[number].submission_depth != 0) return say({0x10c});
      queues_[number] = {};
      return say(status::kSuccess);
    }
    case 0x06:
      return identify(entry);
    case 0x08:
      return say(status::kSuccess, 1);
    case 0x09:
    case 0x0a:
      if ((dword10 & 0xff) == 7) {
        const std::uint32_t pairs = options_.queue_pairs - 1;
        return say(status::kSuccess, pairs << 16 | pairs);
      }
      return say((dword10 & 0xff) == 6 ? status::kSuccess : status::kInvalidField, 1);
    case 0x0c:
      event_id_ = entry.command_id;
      ++awaited_events;
      return;
    case 0x02:
      return say(status::kSuccess);
    case 0x7c:
      if (!options_.shadow_doorbells) return say(status::kInvalidOpcode);
      shadows_ = entry.prp1;
      events_ = entry.prp2;
      return say(status::kSuccess);
    default:
      return say(status::kInvalidOpcode);
  }
}

void FakeNvme::identify(const SubmissionEntry& entry) {
  const auto what = static_cast<std::uint8_t>(entry.lba);
  std::vector<std::byte> made(4096);
  const std::span<std::byte> page(made);
  const std::size_t index = entry.nsid - 1;
  Status status = status::kSuccess;
  if (what == 1) {
    put_text(page, 4, 20, "SERIAL");
    put_text(page, 24, 40, "Fake drive");
    put_text(page, 64, 8, "1.0");
    put<std::uint8_t>(page, 77, options_.transfer_shift);
    put<std::uint32_t>(page, 80, 0x00010400);
    put<std::uint16_t>(page, 256, options_.shadow_doorbells ? 0x100 : 0);
    put<std::uint8_t>(page, 512, 0x66);
    put<std::uint8_t>(page, 513, 0x44);
    put<std::uint32_t>(page, 516, static_cast<std::uint32_t>(options_.namespaces.size()));
    put<std::uint8_t>(page, 525, 1);
  } else if (what == 2 && options_.namespace_lists) {
    std::size_t at = 0;
    for (std::uint32_t nsid = entry.nsid + 1; nsid <= options_.namespaces.size(); ++nsid, at += 4)
      put(page, at, nsid);
  } else if (what == 0 && index < options_.namespaces.size()) {
    const FakeNamespace& each = options_.namespaces[index];
    put<std::uint64_t>(page, 0, each.blocks);
    put<std::uint64_t>(page, 8, each.blocks);
    put<std::uint8_t>(page, 29, each.protection);
    put<std::uint8_t>(page, 99, each.write_protected ? 1 : 0);
    put<std::uint16_t>(page, 128, each.metadata);
    put<std::uint8_t>(page, 130, static_cast<std::uint8_t>(__builtin_ctz(each.block_bytes)));
  } else if (what != 3) {
    status = status::kInvalidField;
  }
  if (change_identify) change_identify(what, page);
  if (status.ok() && !copy(entry.prp1, entry.prp2, made.data(), made.size(), true))
    status = status::kDataTransferError;
  answer(0, entry.command_id, status);
}

// By PRPs: a page, two, or a list of all but the first.
bool FakeNvme::copy(std::uint64_t prp1, std::uint64_t prp2, std::byte* bytes, std::uint64_t count,
                    bool to_host) {
  std::uint64_t page = prp1;
  const std::uint64_t in_first = 4096 - prp1 % 4096;
  const bool list = count > in_first + 4096;
  for (std::uint64_t done = 0, number = 0; done < count; ++number) {
    const std::uint64_t run = std::min(count - done, 4096 - page % 4096);
    std::byte* const at = reach(page, run, to_host);
    if (at == nullptr) return false;
    to_host ? std::memcpy(at, bytes + done, run) : std::memcpy(bytes + done, at, run);
    done += run;
    page = prp2;
    if (list && done < count) {
      std::byte* const place = reach(prp2 + number * 8, 8, false);
      if (place == nullptr) return false;
      std::memcpy(&page, place, 8);
    }
    if (done < count) CHECK(page % 4096 == 0);
  }
  return true;
}

Status FakeNvme::execute(const SubmissionEntry& entry) {
  ++commands;
  if (entry.opcode == 1) ++writes;
  const std::size_t index = entry.nsid - 1;
  if (index >= options_.namespaces.size()) return status::kInvalidNamespace;
  if (entry.opcode > 2) return status::kInvalidOpcode;
  if (entry.opcode == 0) return status::kSuccess;
  const FakeNamespace& target = options_.namespaces[index];
  const std::uint64_t blocks = std::uint64_t{entry.block_count} + 1;
  if (entry.lba + blocks > target.blocks) return status::kLbaOutOfRange;
  const std::uint64_t bytes = blocks * target.block_bytes;
  if (bytes > 4096ull << options_.transfer_shift) return status::kInvalidField;
  if (entry.opcode == 1 && target.write_protected) return {0x020};
  std::byte* const at = contents[index].data() + entry.lba * target.block_bytes;
  return copy(entry.prp1, entry.prp2, at, bytes, entry.opcode == 2) ? status::kSuccess
                                                                    : status::kDataTransferError;
}

}  // namespace bamquery::test
