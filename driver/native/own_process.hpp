// Whether a process is the one that made something, or was forked off since.
#pragma once

#include <unistd.h>

namespace bamquery {

/// A member of what a forked child must leave alone: devices, threads and locks are its parent's.
class OwnProcess {
 public:
  bool is_ours() const { return getpid() == process_; }

 private:
  int process_ = getpid();
};

}  // namespace bamquery
