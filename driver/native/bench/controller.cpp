#include "driver/native/bench/controller.hpp"

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <vector>

#include "driver/native/controller/software_controller.hpp"
#include "driver/native/queues/queue_memory.hpp"

namespace bamquery {
namespace {

constexpr std::size_t kPoolAlignment = 128;
constexpr std::uint64_t kNapNs = 100'000;
constexpr std::uint64_t kStopNs = 10'000'000'000;

QueueShape shape_of(const RingOptions& options) {
  QueueShape shape;
  shape.leased_pairs = options.pairs;
  shape.shared_pairs = 0;
  shape.depth = options.depth;
  shape.slots = options.depth - 1;
  shape.slot_bytes = options.transfer_bytes;
  shape.block_bytes = options.block_bytes;
  return shape;
}

ControllerOptions controller_options(const RingOptions& options) {
  ControllerOptions found;
  found.threads = static_cast<int>(options.threads);
  return found;
}

std::shared_ptr<Namespace> namespace_of(const BenchBacking& backing, const RingOptions& options) {
  if (backing.path().empty()) {
    return Namespace::borrowed(backing.bytes(), options.block_bytes, options.writable);
  }
  if (options.direct) return Namespace::direct_file(backing.path(), options.block_bytes, options.writable);
  return Namespace::mapped_file(backing.path(), options.block_bytes, options.writable);
}

DriveProfile profile_of(const std::string& name) {
  for (const DriveProfile& profile : drive_profiles()) {
    if (profile.name == name) return profile;
  }
  throw std::invalid_argument("no such drive: " + name);
}

// The part of the memory that begins on the alignment that a pool asks for.
std::span<std::byte> aligned(std::vector<std::byte>& memory) {
  void* start = memory.data();
  std::size_t size = memory.size();
  std::align(kPoolAlignment, size - kPoolAlignment, start, size);
  return {static_cast<std::byte*>(start), size};
}

}  // namespace

struct BenchController::Parts {
  explicit Parts(const RingOptions& options)
      : memory(shape_of(options)),
        pool_memory(memory.pool_bytes() + kPoolAlignment),
        controller(memory, controller_options(options)),
        activity(controller.activity()) {}

  QueueMemory memory;
  std::vector<std::byte> pool_memory;
  SoftwareController controller;
  SoftwareController::Activity activity;
};

BenchController::BenchController(const BenchBacking& backing, const RingOptions& options)
    : deadline_ns_(options.deadline_ns),
      served_by_clients_(options.threads == 0),
      parts_(std::make_unique<Parts>(options)),
      pool_(parts_->memory.make_pool(aligned(parts_->pool_memory))) {
  SoftwareController& controller = parts_->controller;
  if (controller.add_namespace(namespace_of(backing, options)) != kNsid) {
    throw std::logic_error("a fresh controller numbers from 1 on");
  }
  if (!options.profile.empty()) controller.set_profile(profile_of(options.profile), options.drives);
  if (!served_by_clients_) controller.start();
}

BenchController::~BenchController() { stop(); }

void BenchController::stop() {
  // Where it has not stopped then, the controller's own destructor waits on.
  (void)parts_->controller.stop(Deadline::in(kStopNs));
}

SoftwareController& BenchController::software() { return parts_->controller; }

ControllerCounts BenchController::counts() const { return parts_->controller.statistics().counts; }

std::string BenchController::direct_path() const {
  for (const std::string& path : parts_->controller.statistics().direct_paths) {
    if (!path.empty()) return path;
  }
  return {};
}

void BenchController::serve_pair(std::uint32_t pair) { parts_->controller.service(pair, kNapNs); }

}  // namespace bamquery
