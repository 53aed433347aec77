#include <memory>

#include "driver/native/bindings/bindings.hpp"
#include "driver/native/threads/thread_budget.hpp"

namespace py = pybind11;

namespace bamquery {

void bind_threads(py::module_& module) {
  py::class_<ThreadBudget, std::shared_ptr<ThreadBudget>>(module, "ThreadBudget")
      .def(py::init<int>(), py::arg("threads"))
      .def_property_readonly("free", &ThreadBudget::free)
      .def("begin", [](const std::shared_ptr<ThreadBudget>& budget) { ThreadBudget::begin(budget); })
      .def_static("end", &ThreadBudget::end)
      .def_static("current", &ThreadBudget::current);
}

}  // namespace bamquery
