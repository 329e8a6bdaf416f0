// Python binding of NVRTC: `_core.Nvrtc(path).compile(source, ...)`.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "nvrtc.hpp"

namespace py = pybind11;

namespace {

constexpr const char* kCompile =
    R"(One text to one cubin.

source: CUDA C++; file: its name in messages; options: NVRTC's; headers: text by include name, found before any folder;
names: name expressions of kernels.
Returns (cubin: bytes, log: str, {expression: name in the cubin}). Raises NvrtcError with the log where the text does
not compile, RuntimeError where NVRTC itself fails. The global lock is released meanwhile, but NVRTC serialises: only
processes compile side by side.)";

py::tuple compile(const cuda::Nvrtc& nvrtc, const std::string& source, const std::string& file,
                  const std::vector<std::string>& options, const std::map<std::string, std::string>& headers,
                  const std::vector<std::string>& names) {
  cuda::Cubin made;
  {
    py::gil_scoped_release unlocked;
    made = nvrtc.compile(source, file, options, headers, names);
  }
  return py::make_tuple(py::bytes(made.bytes), made.log, made.lowered);
}

}  // namespace

void bind_nvrtc(py::module_& module) {
  py::register_exception<cuda::CompileError>(module, "NvrtcError", PyExc_Exception);
  py::class_<cuda::Nvrtc>(module, "Nvrtc", "NVRTC at a path, loaded once. Raises RuntimeError where it cannot be.")
      .def(py::init<const std::string&>(), py::arg("path"))
      .def("version", &cuda::Nvrtc::version, "(major, minor)")
      .def("architectures", &cuda::Nvrtc::architectures, "Compute capabilities it compiles for: 90 is sm_90.")
      .def("install_headers", &cuda::Nvrtc::install_headers, py::arg("folder"),
           "Writes the headers it carries into a folder, once; False where it carries none (before 13.3).")
      .def("compile", &compile, py::arg("source"), py::arg("file"), py::arg("options"), py::arg("headers"),
           py::arg("names"), kCompile);
}
