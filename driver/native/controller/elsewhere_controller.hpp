// Stands for a controller that another process has: it serves the rings, and nothing is to be done here.
#pragma once

#include <optional>
#include <stdexcept>
#include <utility>

#include "driver/native/controller/controller.hpp"

namespace bamquery {

/// What is known of it is one namespace. Who can stop it, or create its queues again, is there, too.
class ElsewhereController final : public Controller {
 public:
  explicit ElsewhereController(NamespaceShape shape) : shape_(std::move(shape)) {}

  std::optional<NamespaceShape> shape_of(std::uint32_t nsid) const override {
    return nsid == shape_.nsid ? std::optional(shape_) : std::nullopt;
  }
  bool service(std::uint32_t, std::uint64_t) override { return false; }
  void wake() override {}
  bool stop(Deadline) override { return false; }
  void recreate_queues() override {
    throw std::logic_error("the controller is elsewhere: who has it creates its queues");
  }

 private:
  void change_activity(int) override {}

  NamespaceShape shape_;
};

}  // namespace bamquery
