// Reading mapped files without dying of them.
#pragma once

#include <cstddef>
#include <span>

namespace bamquery {

/// Runs `work(context)`; false if it touched a page of `mapped` that cannot be had (the file was truncated,
/// or the device failed), which raises SIGBUS. Work stops there and then, so it must hold nothing that has a
/// destructor, and its results count only if this returns true. SIGBUS elsewhere goes to whoever handled it
/// before.
bool run_guarded(std::span<const std::byte> mapped, void (*work)(void*), void* context);

template <typename Work>
bool guarded(std::span<const std::byte> mapped, Work& work) {
  return run_guarded(mapped, [](void* context) { (*static_cast<Work*>(context))(); }, &work);
}

}  // namespace bamquery
