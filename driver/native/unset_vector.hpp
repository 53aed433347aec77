// Vectors that write to no memory before their owner does.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "driver/native/memory/large_vector.hpp"

namespace bamquery {

template <typename T>
struct UnsetAllocator : LargeAllocator<T> {
  static_assert(std::is_trivially_default_constructible_v<T>);

  UnsetAllocator() = default;
  template <typename Other>
  UnsetAllocator(const UnsetAllocator<Other>& /*other*/) noexcept {}

  // Values that nobody gives are whatever is there.
  void construct(T* /*place*/) noexcept {}
  template <typename... Given>
  void construct(T* place, Given&&... given) {
    std::construct_at(place, std::forward<Given>(given)...);
  }
};

/// `resize` sets no values: for who writes all of them, perhaps by several threads.
template <typename T>
using UnsetVector = std::vector<T, UnsetAllocator<T>>;

}  // namespace bamquery
