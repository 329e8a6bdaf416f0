// evaluator._core: what the evaluator does in C++, bound to Python. Each part binds itself in its own file.
#include <pybind11/pybind11.h>

namespace py = pybind11;

void bind_judging(py::module_& module);  // statistics, stopping rule, compare
void bind_confine(py::module_& module);  // seccomp, landlock, rlimits for the calling process
void bind_nvrtc(py::module_& module);    // CUDA C++ to cubins
void bind_device(py::module_& module);   // the CUDA driver: memory, launches, graphs, timers
void bind_ffi(py::module_& module);      // programs that XLA, CuPy and PyTorch call

PYBIND11_MODULE(_core, module) {
  module.doc() = "C++ core of the evaluator. Builds and imports without a CUDA toolkit or a GPU.";
  bind_judging(module);
  bind_confine(module);
  bind_nvrtc(module);
  bind_device(module);
  bind_ffi(module);
}
