#include "bindings.hpp"
#include "errors.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

// Raised by class name: the Python classes live in bamquery.errors, where users catch them.
void raise(const char* class_name, const StorageError& error) {
  const py::object error_class = py::module_::import("bamquery.errors").attr(class_name);
  const py::object path = error.path().empty() ? py::object(py::none()) : py::object(py::str(error.path()));
  PyErr_SetObject(error_class.ptr(), error_class(error.what(), path).ptr());
}

}  // namespace

void bind_errors(py::module_& /*module*/) {
  py::register_exception_translator([](std::exception_ptr pending) {
    try {
      if (pending) std::rethrow_exception(pending);
    } catch (const CorruptionError& error) {
      raise("CorruptionError", error);
    } catch (const StorageError& error) {
      raise("StorageError", error);
    }
  });
}

}  // namespace bamquery
