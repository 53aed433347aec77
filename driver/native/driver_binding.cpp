#include "bindings.hpp"

namespace bamquery {

void bind_driver(pybind11::module_& /*module*/) {}

}  // namespace bamquery
