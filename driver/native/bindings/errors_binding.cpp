#include "driver/native/bindings/bindings.hpp"
#include "driver/native/errors.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

// Raised by class name: the Python classes live in bamquery.errors, where users catch them.
py::object class_named(const char* name) { return py::module_::import("bamquery.errors").attr(name); }

py::object path_of(const StorageError& error) {
  return error.path().empty() ? py::object(py::none()) : py::object(py::str(error.path()));
}

void raise(const char* class_name, const StorageError& error) {
  const py::object error_class = class_named(class_name);
  PyErr_SetObject(error_class.ptr(), error_class(error.what(), path_of(error)).ptr());
}

void raise(const NvmeError& error) {
  const py::object error_class = class_named("NvmeError");
  const Status status = error.status();
  const py::object raised = error_class(error.what(), error.nsid(), error.lba(), status.type(),
                                        status.value(), error.drive(), py::arg("path") = path_of(error));
  PyErr_SetObject(error_class.ptr(), raised.ptr());
}

}  // namespace

void bind_errors(py::module_& /*module*/) {
  py::register_exception_translator([](std::exception_ptr pending) {
    try {
      if (pending) std::rethrow_exception(pending);
    } catch (const NvmeError& error) {
      raise(error);
    } catch (const CorruptionError& error) {
      raise("CorruptionError", error);
    } catch (const StorageError& error) {
      raise("StorageError", error);
    }
  });
}

}  // namespace bamquery
