// What the images of guests' drives hold: the place for C++; tests/guests/pattern.py says the same.
#pragma once

#include "tests/native/conformance/pattern.hpp"

namespace guests {

using bamquery::conformance::pattern;  ///< Its contents are the drives, numbered from 0 as they are attached.

}  // namespace guests
