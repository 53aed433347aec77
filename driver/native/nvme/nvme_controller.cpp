#include "driver/native/nvme/nvme_controller.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "driver/native/errors.hpp"

namespace bamquery {
namespace {

constexpr std::uint64_t kEndNs = 5'000'000'000;

void require(bool holds, const NvmeDrive& drive, const std::string& what) {
  if (!holds) throw std::invalid_argument(drive.name() + ": " + what);
}

std::string block_sizes(const NvmeDrive& drive) {
  std::string text;
  for (const NamespaceData& each : drive.namespaces()) {
    text += (text.empty() ? "" : "; ") + std::string("namespace ") + std::to_string(each.nsid) + ": " +
            (each.refusal.empty() ? std::to_string(each.block_bytes) + " bytes" : each.refusal);
  }
  return text.empty() ? "it has no namespaces" : text;
}

QueueMemory& checked(const NvmeDrive& drive, QueueMemory& memory) {
  const QueueShape& shape = memory.shape();
  const DriveLimits& limits = drive.limits();
  require(shape.depth <= limits.queue_depth, drive,
          "queues may have " + std::to_string(limits.queue_depth) + " entries, not " +
              std::to_string(shape.depth));
  require(shape.slot_bytes <= limits.transfer_bytes, drive,
          "a command may transfer " + std::to_string(limits.transfer_bytes) + " bytes (MDTS); a slot has " +
              std::to_string(shape.slot_bytes));
  const bool any = std::ranges::any_of(drive.namespaces(), [&](const NamespaceData& each) {
    return each.refusal.empty() && each.block_bytes == shape.block_bytes;
  });
  require(any, drive,
          "no namespace has LBAs of " + std::to_string(shape.block_bytes) + " bytes: " + block_sizes(drive));
  return memory;
}

DoorbellKind chosen(NvmeDrive& drive, const QueueMemory& memory, DoorbellKind wanted) {
  const QueueShape& shape = memory.shape();
  const bool same_stride = shape.doorbell_stride == drive.limits().doorbell_stride;
  // All queue pairs of a drive have shadows or none has.
  const std::uint32_t shadowed = ShadowDoorbells::queues(drive.limits().doorbell_stride);
  if (drive.shadow_doorbells() != nullptr) {
    require(wanted == DoorbellKind::kAutomatic || wanted == DoorbellKind::kShadow, drive,
            "its doorbells are shadows already, for all queue pairs");
    wanted = DoorbellKind::kShadow;
  }
  if (wanted == DoorbellKind::kAutomatic) {
    const bool shadows = drive.limits().has_shadow_doorbells && drive.limits().queue_pairs < shadowed &&
                         same_stride && drive.use_shadow_doorbells() != nullptr;
    return shadows       ? DoorbellKind::kShadow
           : same_stride ? DoorbellKind::kRegisters
                         : DoorbellKind::kForwarded;
  }
  if (wanted == DoorbellKind::kForwarded) return wanted;
  require(same_stride, drive,
          "its doorbells have stride " + std::to_string(drive.limits().doorbell_stride) +
              " (CAP.DSTRD), not " + std::to_string(shape.doorbell_stride));
  if (wanted == DoorbellKind::kShadow) {
    require(drive.limits().has_shadow_doorbells, drive, "it has no shadow doorbells (OACS bit 8)");
    require(shape.pairs() < shadowed, drive,
            "a page has shadow doorbells for " + std::to_string(shadowed - 1) + " queue pairs, not " +
                std::to_string(shape.pairs()));
    require(drive.use_shadow_doorbells() != nullptr, drive,
            "shadow doorbells are for all queue pairs, and it has some without");
  }
  return wanted;
}

}  // namespace

NvmeController::NvmeController(std::shared_ptr<NvmeDrive> drive, QueueMemory& memory, DoorbellKind doorbells)
    : drive_(std::move(drive)),
      memory_(checked(*drive_, memory)),
      numbers_(*drive_, memory.shape().pairs()),
      mapping_(drive_->memory().map(memory.regions(drive_->writable()))),
      kind_(chosen(*drive_, memory, doorbells)) {
  QueuePlace place;
  place.bus = mapping_.iova();
  place.first_queue = numbers_.first;
  place.read_only = !drive_->writable();
  ShadowDoorbells* const shadows = kind_ == DoorbellKind::kShadow ? drive_->shadow_doorbells() : nullptr;
  if (shadows != nullptr) {
    const std::uint32_t most = ShadowDoorbells::queues(drive_->limits().doorbell_stride);
    require(numbers_.first + numbers_.count <= most, *drive_,
            "the page of shadow doorbells is used up: it has them for " + std::to_string(most - 1) +
                " queue pairs");
    place.doorbells = shadows->doorbells();
  } else if (kind_ == DoorbellKind::kRegisters) {
    place.doorbells = drive_->registers().doorbells();
    place.registers = true;
  }
  memory_.place(place);
  if (kind_ != DoorbellKind::kRegisters) {
    forwarder_ = std::make_unique<DoorbellForwarder>(*drive_, memory_, numbers_.first, shadows);
  }
  create_queues();
}

NvmeController::~NvmeController() {
  if (!process_.is_ours()) {
    (void)forwarder_.release();  // its thread is not here to be waited for
    return;
  }
  stop(Deadline::in(kEndNs));
  memory_.place({});  // whoever has it next is told by doorbells that are there
}

void NvmeController::create_queues() {
  drive_->make_ready();
  const std::uint64_t generation = drive_->generation();
  std::uint32_t created = 0;
  try {
    for (; created < numbers_.count; ++created) {
      drive_->create_queues(memory_.queue_id(created), memory_.shape().depth,
                            memory_.bus(memory_.submissions(created)),
                            memory_.bus(memory_.completions(created)));
    }
  } catch (...) {
    for (std::uint32_t pair = 0; pair < created; ++pair) {
      if (!drive_->delete_queues(memory_.queue_id(pair), Deadline::in(kEndNs))) {
        drive_->reset(Deadline::in(kEndNs));
        break;
      }
    }
    throw;
  }
  generation_ = generation;
  running_ = true;
  if (forwarder_) forwarder_->renew();
}

std::optional<NamespaceShape> NvmeController::shape_of(std::uint32_t nsid) const {
  for (const NamespaceData& each : drive_->namespaces()) {
    if (each.nsid != nsid) continue;
    if (!each.refusal.empty() || each.block_bytes != memory_.shape().block_bytes) return std::nullopt;
    return NamespaceShape{nsid,
                          each.block_bytes,
                          each.blocks,
                          each.blocks * each.block_bytes,
                          drive_->writable() && !each.write_protected,
                          drive_->volatile_cache(),
                          drive_->name() + "/" + std::to_string(nsid)};
  }
  return std::nullopt;
}

bool NvmeController::service(std::uint32_t pair, std::uint64_t /*wait_ns*/) {
  return forwarder_ && forwarder_->look(pair);
}

void NvmeController::wake() {
  if (forwarder_) forwarder_->look();
}

void NvmeController::change_activity(int by) {
  if (forwarder_ && process_.is_ours()) forwarder_->change_activity(by);
}

bool NvmeController::stop(Deadline deadline) {
  if (!process_.is_ours()) return true;  // nothing of a child's is under way
  const std::lock_guard lock(mutex_);
  if (!running_) return true;
  if (forwarder_) forwarder_->stop();
  // A reset by somebody else has ended them already.
  if (generation_ == drive_->generation()) {
    // Half of the time is for a reset, should the drive not answer.
    const std::uint64_t now = now_ns();
    const Deadline patience{now + (deadline.at_ns - std::min(deadline.at_ns, now)) / 2};
    bool deleted = true;
    for (std::uint32_t pair = 0; deleted && pair < numbers_.count; ++pair) {
      deleted = drive_->delete_queues(memory_.queue_id(pair), patience);
    }
    if (!deleted && !drive_->reset(deadline)) return false;
  }
  running_ = false;
  return true;
}

void NvmeController::recreate_queues() {
  if (!process_.is_ours())
    throw std::logic_error("the drive is that of another process, which forked this one");
  const std::lock_guard lock(mutex_);
  if (running_) throw std::logic_error("queue pairs are recreated while the controller is stopped");
  memory_.reset_rings();
  create_queues();
}

std::string NvmeController::doorbell_text() const {
  switch (kind_) {
    case DoorbellKind::kShadow:
      return "shadow doorbells in memory, which the drive looks at; its registers when it asks for them";
    case DoorbellKind::kForwarded:
      return "doorbells in memory, forwarded to the drive's registers";
    case DoorbellKind::kRegisters:
    case DoorbellKind::kAutomatic:
      break;
  }
  return "the drive's registers";
}

std::optional<std::uint64_t> NvmeController::doorbell_writes() const {
  if (!forwarder_) return std::nullopt;
  return forwarder_->writes();
}

}  // namespace bamquery
