#include "driver/native/bench/controller.hpp"

#include <memory>
#include <stdexcept>

#include "driver/native/controller/software_controller.hpp"
#include "driver/native/queues/queue_memory.hpp"

namespace bamquery {
namespace {

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

}  // namespace

struct BenchController::Parts {
  explicit Parts(const RingOptions& options)
      : memory(shape_of(options)),
        controller(memory, controller_options(options)),
        rings(memory, controller, kNsid, options.deadline_ns, options.threads == 0) {}

  QueueMemory memory;
  SoftwareController controller;
  BenchRings rings;
};

BenchController::BenchController(const BenchBacking& backing, const RingOptions& options)
    : parts_(std::make_unique<Parts>(options)) {
  SoftwareController& controller = parts_->controller;
  if (controller.add_namespace(namespace_of(backing, options)) != kNsid) {
    throw std::logic_error("a fresh controller numbers from 1 on");
  }
  if (!options.profile.empty()) controller.set_profile(profile_of(options.profile), options.drives);
  if (options.threads != 0) controller.start();
}

BenchController::~BenchController() { stop(); }

void BenchController::stop() {
  // Where it has not stopped then, the controller's own destructor waits on.
  (void)parts_->controller.stop(Deadline::in(kStopNs));
}

BenchRings& BenchController::rings() { return parts_->rings; }

ControllerCounts BenchController::counts() const { return parts_->controller.statistics().counts; }

std::string BenchController::direct_path() const {
  for (const std::string& path : parts_->controller.statistics().direct_paths) {
    if (!path.empty()) return path;
  }
  return {};
}

}  // namespace bamquery
