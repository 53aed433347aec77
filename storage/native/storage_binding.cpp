#include "bindings.hpp"

namespace bamquery {

void bind_storage(pybind11::module_& /*module*/) {}

}  // namespace bamquery
