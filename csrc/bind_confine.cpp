// Python binding of the confinement: `_core.confine(profile, readable=[], writable=[], limits={})`.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "confine.hpp"

namespace py = pybind11;

namespace {

constexpr const char* kDoc =
    R"(Confine the calling process for good: rlimits, no_new_privs, landlock, seccomp.

profile: "tracer" (computes, writes to open descriptors; opens nothing unless `readable` names something),
  "compiler" (starts processes, no network) or "program" (native code of a program; writes to descriptor 1 only).
readable, writable: files and folders; everything else cannot be opened.
limits: any of cpu_s, memory_bytes, file_bytes, open_files, processes, stack_bytes.
Returns {"landlock": ABI version or 0, "seccomp": bool, "missing": [what this kernel lacks]}.
Raises ValueError for an unknown profile or limit, RuntimeError where the kernel refuses.)";

py::dict confine_process(const std::string& profile, std::vector<std::string> readable,
                         std::vector<std::string> writable, std::map<std::string, long long> limits) {
  confine::Request request;
  request.profile = profile;
  request.readable = std::move(readable);
  request.writable = std::move(writable);
  request.limits = std::move(limits);
  const confine::Report report = confine::apply(request);
  py::list missing;
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
             py::arg("limits") = std::map<std::string, long long>{}, kDoc);
  module.def("landlock_abi", &confine::landlock::abi_version, "Landlock ABI version of this kernel, 0 if it has none.");
}
