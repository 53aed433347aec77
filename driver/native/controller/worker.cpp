#include "driver/native/controller/worker.hpp"

#include <algorithm>
#include <cstring>

#include "driver/native/files/bus_guard.hpp"

namespace bamquery {
namespace {

// Cuts the segments off behind so many bytes; returns how many are left.
std::size_t tear(std::span<Segment> segments, std::uint32_t bytes) {
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (bytes == 0) return i;
    segments[i].bytes = std::min(segments[i].bytes, bytes);
    bytes -= segments[i].bytes;
  }
  return segments.size();
}

}  // namespace

ControllerWorker::ControllerWorker(std::span<const ControllerQueueView> queues, DirectoryBoard& board,
                                   const Options& options)
    : queues_(queues.begin(), queues.end()),
      reader_(board),
      options_(options),
      async_(options.executors, options.executor_depth),
      segments_(most_segments(options.limits)),
      items_(kBatch + segments_.size()) {}

bool ControllerWorker::look() {
  const Directory& directory = reader_.enter();
  bool worked = false;
  next_due_ns_ = ~0ull;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    if (i + 1 < queues_.size()) queues_[i + 1].ring.prefetch(kBatch / 2);
    worked |= serve(queues_[i], directory);
  }
  reader_.leave();
  return (!async_.empty() && reap(0)) || worked;
}

bool ControllerWorker::await_executor(std::uint64_t wait_ns) { return !async_.empty() && reap(wait_ns); }

bool ControllerWorker::serve(ServedQueue& queue, const Directory& directory) {
  if (directory.shaped() || !queue.held.empty()) [[unlikely]] {
    const std::uint64_t before = queue.ordinal;
    const std::uint32_t count = fetch_shaped(queue, directory);
    if (count > 0) execute<true>(queue, directory, count);
    if (queue.ring.failed()) count_failure(queue);
    if (count == 0 && queue.ordinal != before) publish_counts();  // all of them wait
    if (!queue.held.empty()) next_due_ns_ = std::min(next_due_ns_, queue.held.next_due_ns());
    return count > 0 || queue.ordinal != before;
  }
  const std::uint32_t count = queue.ring.ready(kBatch);
  if (count == 0) {
    if (queue.ring.failed()) [[unlikely]] {
      count_failure(queue);
    }
    return false;
  }
  // Read once, since the submitter can change an entry at any time.
  for (std::uint32_t i = 0; i < count; ++i) entries_[i] = queue.ring.entry(i);
  queue.ring.fetched(count);
  queue.ordinal += count;
  execute<false>(queue, directory, count);
  return true;
}

// Entries whose time has come, and new ones that need not wait.
std::uint32_t ControllerWorker::fetch_shaped(ServedQueue& queue, const Directory& directory) {
  const std::uint64_t now = now_ns();
  std::uint32_t count = fetch_held(queue, now);
  const std::uint32_t fresh = queue.ring.ready(kBatch - count);
  std::array<std::uint64_t, kBatch> costs{};
  std::uint64_t begin = 0;
  if (directory.pacer != nullptr && fresh > 0) {
    std::uint64_t total = 0;
    for (std::uint32_t i = 0; i < fresh; ++i) {
      const SubmissionEntry& entry = queue.ring.entry(i);
      const std::uint64_t bytes = (std::uint64_t{entry.block_count} + 1)
                                  << directory.find(entry.nsid).block_shift;
      costs[i] = directory.pacer->cost_ps(static_cast<Opcode>(entry.opcode), bytes);
      total += costs[i];
    }
    begin = directory.pacer->reserve(now, total);
  }
  for (std::uint32_t i = 0; i < fresh; ++i) {
    const SubmissionEntry entry = queue.ring.entry(i);
    const std::uint64_t ordinal = queue.ordinal++;
    Effect effect;
    if (directory.faults != nullptr) effect = directory.faults->decide(entry, queue.ring.id(), ordinal);
    std::uint64_t due = now;
    if (directory.pacer != nullptr) {
      begin += costs[i];
      due = directory.pacer->end_ns(static_cast<Opcode>(entry.opcode), begin);
    }
    due += effect.delay_ns;
    if (effect.kind == FaultKind::kReorder) {
      queue.held.hold_behind(ordinal + 1 + effect.behind, due + kReorderNs, entry, effect);
    } else if (due > now) {
      queue.held.hold_until(due, entry, effect);
    } else {
      entries_[count] = entry;
      effects_[count] = effect;
      ++count;
      continue;
    }
    ++counts_.held;
  }
  queue.ring.fetched(fresh);
  return count;
}

std::uint32_t ControllerWorker::fetch_held(ServedQueue& queue, std::uint64_t now) {
  std::uint32_t count = 0;
  while (count < kBatch && queue.held.take_due(now, queue.ordinal, entries_[count], effects_[count])) ++count;
  return count;
}

// Three passes: what the first one asks memory for has come when the second one copies, and the third one's
// stores are all to one ring.
template <bool kShaped>
void ControllerWorker::execute(ServedQueue& queue, const Directory& directory, std::uint32_t count) {
  ++counts_.looks;
  for (std::uint32_t first = 0, next = 0; first < count; first = next) {
    item_count_ = 0;
    guarded_begin_ = guarded_end_ = nullptr;
    for (; next < count && item_count_ + segments_.size() <= items_.size(); ++next) {
      planned_[next] = plan<kShaped>(queue, directory, next);
    }
    if (item_count_ > 0) copy();
    post<kShaped>(queue, first, next);
  }
  publish_counts();
}

template <bool kShaped>
ControllerWorker::Planned ControllerWorker::plan(ServedQueue& queue, const Directory& directory,
                                                 std::uint32_t place) {
  const SubmissionEntry& entry = entries_[place];
  const NamespaceView& view = directory.find(entry.nsid);
  Planned planned{entry.command_id, entry.opcode, false, check_header(entry, view), 0};
  if (!planned.status.ok()) {
    ++counts_.refused;
    return planned;
  }
  if (kShaped && effects_[place].kind == FaultKind::kError) {
    planned.status = effects_[place].status;
    return planned;
  }
  const auto opcode = static_cast<Opcode>(entry.opcode);
  std::uint32_t pieces = 0;
  Extent extent{status::kSuccess, 0, 0};
  if (opcode != Opcode::kFlush) {
    extent = check_extent(entry, view, options_.limits);
    planned.status = extent.status;
    if (extent.status.ok()) {
      planned.status = locate(entry, extent.bytes, options_.limits, segments_.data(), pieces);
    }
    if (!planned.status.ok()) {
      ++counts_.refused;
      return planned;
    }
    planned.bytes = extent.bytes;
  }
  std::span<Segment> segments(segments_.data(), pieces);
  if (kShaped && effects_[place].kind == FaultKind::kTear && opcode == Opcode::kWrite) {
    std::uint32_t left = effects_[place].bytes;
    if (view.backing == Backing::kDirect) left &= ~0u << view.block_shift;  // no part of a block gets there
    segments = segments.first(tear(segments, left));
  }
  if (view.backing == Backing::kDirect || (opcode == Opcode::kFlush && view.backing == Backing::kMapped)) {
    planned.asynchronous = true;
    AsyncCommands::Ended command{&queue, entry.command_id, opcode, status::kSuccess, planned.bytes, {}};
    if (kShaped) command.effect = effects_[place];
    async_.start(command, *view.owner, extent.offset, segments);
  } else if (opcode != Opcode::kFlush) {
    plan_copies(view, extent, opcode == Opcode::kWrite, segments, place);
  }
  return planned;
}

void ControllerWorker::plan_copies(const NamespaceView& view, const Extent& extent, bool writes,
                                   std::span<const Segment> segments, std::uint32_t place) {
  std::byte* data = view.data + extent.offset;
  std::uint64_t left = view.data_bytes - extent.offset;
  if (view.backing == Backing::kMapped) {
    const std::byte* const end = data + std::min<std::uint64_t>(left, extent.bytes);
    if (guarded_begin_ == nullptr || data < guarded_begin_) guarded_begin_ = data;
    if (end > guarded_end_) guarded_end_ = end;
  }
  for (const Segment& segment : segments) {
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, segment.bytes));
    CopyItem& item = items_[item_count_++];
    item = {writes ? data : segment.memory, writes ? segment.memory : data, bytes, place};
    prefetch_source(item);
    // What a file's last block lacks reads as zeros.
    if (bytes < segment.bytes) std::memset(segment.memory + bytes, 0, segment.bytes - bytes);
    data += bytes;
    left -= bytes;
  }
}

void ControllerWorker::copy() {
  const std::span<const CopyItem> items(items_.data(), item_count_);
  if (guarded_begin_ == nullptr) {
    copy_batch(items, options_.stores);
    return;
  }
  auto work = [&] { copy_batch(items, options_.stores); };
  if (!guarded(std::span(guarded_begin_, guarded_end_), work)) copy_singly();
}

// Some file of the batch has lost bytes: finds out which commands cannot have theirs.
void ControllerWorker::copy_singly() {
  for (std::uint32_t i = 0; i < item_count_; ++i) {
    const CopyItem& item = items_[i];
    auto work = [&] { std::memcpy(item.to, item.from, item.bytes); };
    if (guarded(std::span(guarded_begin_, guarded_end_), work)) continue;
    Planned& planned = planned_[item.command];
    const bool writes = planned.opcode == static_cast<std::uint8_t>(Opcode::kWrite);
    planned.status = writes ? status::kWriteFault : status::kUnrecoveredRead;
  }
}

template <bool kShaped>
void ControllerWorker::post(ServedQueue& queue, std::uint32_t first, std::uint32_t end) {
  for (std::uint32_t i = first; i < end; ++i) {
    if (planned_[i].asynchronous) continue;
    if constexpr (kShaped) {
      finish(queue, planned_[i], effects_[i]);
    } else {
      count(planned_[i]);
      queue.ring.complete(planned_[i].command_id, planned_[i].status);
    }
  }
}

void ControllerWorker::finish(ServedQueue& queue, const Planned& planned, const Effect& effect) {
  Planned answered = planned;
  if (effect.kind == FaultKind::kTear && answered.status.ok()) answered.status = effect.status;
  count(answered);
  if (effect.kind == FaultKind::kLose) {
    ++counts_.lost;
    queue.ring.forget();
  } else if (effect.kind == FaultKind::kWrongHead) {
    queue.ring.complete_with_head(answered.command_id, answered.status, queue.ring.depth() + 1);
  } else {
    queue.ring.complete(answered.command_id, answered.status);
  }
}

void ControllerWorker::count(const Planned& planned) {
  const bool ok = planned.status.ok();
  counts_.errors += !ok;
  switch (static_cast<Opcode>(planned.opcode)) {
    case Opcode::kRead:
      ++counts_.reads;
      counts_.read_bytes += ok ? planned.bytes : 0;
      break;
    case Opcode::kWrite:
      ++counts_.writes;
      counts_.write_bytes += ok ? planned.bytes : 0;
      break;
    case Opcode::kFlush:
      ++counts_.flushes;
      break;
  }
}

void ControllerWorker::publish_counts() {
  tallies_.add(counts_);
  counts_ = {};
}

void ControllerWorker::count_failure(ServedQueue& queue) {
  if (!queue.failure_counted) failed_queues_.add(1);
  queue.failure_counted = true;
}

void ControllerWorker::forget_queues() {
  for (ServedQueue& queue : queues_) queue = ServedQueue(queue.ring.view());
}

bool ControllerWorker::reap(std::uint64_t wait_ns) {
  const std::size_t ended = async_.reap(wait_ns, [this](const AsyncCommands::Ended& command) {
    const Planned planned{command.command_id, static_cast<std::uint8_t>(command.opcode), true, command.status,
                          command.bytes};
    finish(*command.queue, planned, command.effect);
  });
  if (ended == 0) return false;
  publish_counts();
  return true;
}

bool ControllerWorker::abort(Deadline deadline) {
  for (ServedQueue& queue : queues_) {
    for (std::uint32_t left = queue.ring.depth(); left > 0;) {
      const std::uint32_t count = queue.ring.ready(std::min(left, kBatch));
      if (count == 0) break;
      for (std::uint32_t i = 0; i < count; ++i) entries_[i] = queue.ring.entry(i);
      queue.ring.fetched(count);
      queue.ordinal += count;
      for (std::uint32_t i = 0; i < count; ++i) {
        queue.ring.complete(entries_[i].command_id, status::kQueueDeleted);
      }
      counts_.errors += count;
      left -= count;
    }
    SubmissionEntry entry;
    Effect effect;
    while (queue.held.take(entry, effect)) {
      queue.ring.complete(entry.command_id, status::kQueueDeleted);
      ++counts_.errors;
    }
  }
  publish_counts();
  async_.drop_waiting(status::kQueueDeleted);
  while (!async_.empty()) {
    if (deadline.passed()) return false;
    reap(1'000'000);
  }
  return true;
}

}  // namespace bamquery
