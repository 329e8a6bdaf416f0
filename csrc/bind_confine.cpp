// Python binding of the confinement: `_core.confine(profile, readable=[], writable=[], limits={}, layers=[...])`.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "confine.hpp"

namespace py = pybind11;

namespace {

constexpr const char* kDoc =
    R"(Confine the calling process for good: rlimits, no_new_privs, landlock, seccomp. It ends with whoever started it.

profile: "tracer" (computes, writes to open descriptors; opens nothing unless `readable` names something),
  "compiler" (starts processes, no network), "nvrtc" (reads files), "program" (native code of a program; writes to
  descriptor 1 only) or "gpu" (whatever a driver needs; starts nothing, no network).
readable, writable: files and folders; everything else cannot be opened.
limits: any of cpu_s, memory_bytes, file_bytes, open_files, processes, stack_bytes.
layers: those to apply, of rlimits, landlock, seccomp.
Returns {"landlock": ABI version or 0, "seccomp": bool, "missing": [layers not in force]}.
Raises ValueError for an unknown profile, limit or layer, RuntimeError where the kernel refuses.)";

py::dict confine_process(const std::string& profile, std::vector<std::string> readable,
                         std::vector<std::string> writable, std::map<std::string, long long> limits,
                         const std::vector<std::string>& layers) {
  confine::Request request;
  request.profile = profile;
  request.readable = std::move(readable);
  request.writable = std::move(writable);
  request.limits = std::move(limits);
  request.layers = confine::Layers::none();
  for (const std::string& name : layers) request.layers.add(name);
  const confine::Report report = confine::apply(request);
  py::list missing;
  if (!report.rlimits) missing.append("rlimits");
  if (report.landlock_abi == 0) missing.append("landlock");
  if (!report.seccomp) missing.append("seccomp");
  py::dict result;
  result["landlock"] = report.landlock_abi;
  result["seccomp"] = report.seccomp;
  result["missing"] = missing;
  return result;
}

}  // namespace

void bind_confine(py::module_& module) {
  module.def("confine", &confine_process, py::arg("profile"), py::kw_only(),
             py::arg("readable") = std::vector<std::string>{}, py::arg("writable") = std::vector<std::string>{},
             py::arg("limits") = std::map<std::string, long long>{},
             py::arg("layers") = std::vector<std::string>{"rlimits", "landlock", "seccomp"}, kDoc);
  module.def("landlock_abi", &confine::landlock::abi_version, "Landlock ABI version of this kernel, 0 if it has none.");
  module.def("seccomp_filters", &confine::seccomp::available, "Whether this kernel has seccomp filters.");
}
