// Python binding of the CUDA driver: `_core.CudaDevice` and what lives on it.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "cublas.hpp"
#include "device.hpp"
#include "graph.hpp"
#include "guarded_buffer.hpp"
#include "module.hpp"
#include "timer.hpp"

namespace py = pybind11;
using cuda::Device;
using Owner = std::shared_ptr<Device>;

namespace {

constexpr const char* kDevice =
    R"(One GPU: its primary context, which CuPy shares, and one stream.

Everything that is queued goes to `stream`. Raises RuntimeError where there is no driver or no such device,
CudaError for a failed driver call (its text begins with the call; `args[1]` is the CUresult).)";

// Module-level exception types; CudaError carries (text, code).
PyObject* cuda_error = nullptr;

void bind_classes(py::module_& module) {
  using unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<Device, Owner>(module, "CudaDevice", kDevice)
      .def(py::init<int>(), py::arg("ordinal") = 0)
      .def_property_readonly("name", &Device::name)
      .def_property_readonly("memory", &Device::memory, "(free, total) bytes.")
      .def("__cuda_stream__", [](const Device& d) {
        return py::make_tuple(0, reinterpret_cast<std::uintptr_t>(d.stream()));
      }, "Version and address of the stream that everything is queued on, as CUDA libraries of Python ask for it.")
      .def_property_readonly("architecture",
                             [](const Device& d) {
                               return 10 * d.attribute(cuda::kCapabilityMajor) + d.attribute(cuda::kCapabilityMinor);
                             })
      .def_property_readonly("l2_bytes", [](const Device& d) { return d.attribute(cuda::kL2CacheBytes); })
      .def_property_readonly("shared_bytes", [](const Device& d) { return d.attribute(cuda::kMaxSharedPerBlockOptin); },
                             "Most shared memory of one block.")
      .def_property_readonly("memory_clock_khz", [](const Device& d) { return d.attribute(cuda::kMemoryClockKHz); })
      .def_property_readonly("memory_bus_bits", [](const Device& d) { return d.attribute(cuda::kMemoryBusBits); })
      .def("wait", &Device::wait, py::arg("deadline_s"), unlocked(),
           "Waits until the stream is idle. Raises CudaDeadline after `deadline_s`, CudaError for what a kernel did.")
      .def("fill", &Device::fill, py::arg("address"), py::arg("pattern"), py::arg("count"),
           "Repeats the 1, 2, 4 or 8 bytes of `pattern` `count` times.")
      .def("copy", &Device::copy, py::arg("target"), py::arg("source"), py::arg("bytes"))
      .def(
          "launch",
          [](const Device& d, std::uintptr_t function, const std::array<unsigned, 3>& grid,
             const std::array<unsigned, 3>& block, unsigned shared_bytes, std::vector<std::string> arguments) {
            d.launch(reinterpret_cast<cuda::Handle>(function), grid, block, shared_bytes, std::move(arguments));
          },
          py::arg("function"), py::arg("grid"), py::arg("block"), py::arg("shared_bytes"), py::arg("arguments"),
          "Queues a kernel; `arguments` are the bytes of each one, in the kernel's own types.")
      .def("begin_capture", &Device::begin_capture, "What is queued from now on is recorded; CudaGraph ends it.")
      .def("abort_capture", &Device::abort_capture, "Ends a recording that failed; never raises.");

  py::class_<cuda::GuardedBuffer>(module, "GuardedBuffer", "Memory whose end or start touches an unmapped page.")
      .def(py::init([](Owner device, std::size_t bytes, bool right) {
             return std::make_unique<cuda::GuardedBuffer>(std::move(device), bytes, right);
           }),
           py::arg("device"), py::arg("bytes"), py::arg("right"))
      .def_property_readonly("address", &cuda::GuardedBuffer::address)
      .def_property_readonly("bytes", &cuda::GuardedBuffer::bytes)
      .def_property_readonly("before", &cuda::GuardedBuffer::before, "(address, bytes) of its pages before it.")
      .def_property_readonly("behind", &cuda::GuardedBuffer::behind, "(address, bytes) of its pages behind it.");

  py::class_<cuda::Module>(module, "CudaModule", "A loaded cubin.")
      .def(py::init([](Owner device, const py::bytes& cubin) {
             return std::make_unique<cuda::Module>(std::move(device), std::string(cubin));
           }),
           py::arg("device"), py::arg("cubin"))
      .def("function",
           [](const cuda::Module& m, const std::string& name) {
             return reinterpret_cast<std::uintptr_t>(m.function(name));
           })
      .def("global_variable", &cuda::Module::global, "(address, bytes) of a global variable.")
      .def("allow_shared", &cuda::Module::allow_shared, py::arg("name"), py::arg("bytes"),
           "Lets a kernel have so much dynamic shared memory.");

  py::class_<cuda::Graph>(module, "CudaGraph", "What has been recorded since `begin_capture`; construction ends it.")
      .def(py::init([](Owner device) { return std::make_unique<cuda::Graph>(std::move(device)); }), py::arg("device"))
      .def("launch", &cuda::Graph::launch, "Queues one replay.");

  py::class_<cuda::Timer>(module, "CudaTimer", "Times work on the stream by events, the L2 cache flushed before each.")
      .def(py::init([](Owner device) { return std::make_unique<cuda::Timer>(std::move(device)); }), py::arg("device"))
      .def("start", &cuda::Timer::start, "Queues a flush and an event; queue the work next.")
      .def("stop", &cuda::Timer::stop, "Queues the event behind the work.")
      .def("collect", &cuda::Timer::collect, py::arg("deadline_s"), unlocked(),
           "Waits; microseconds of every piece of work since the last call.");

  py::class_<cuda::Matrix>(module, "CublasMatrix", "An operand of a batch of products, as it is stored.")
      .def(py::init<cuda::DevicePointer, bool, int, long long>(), py::arg("address"), py::arg("transposed"),
           py::arg("leading"), py::arg("stride"));

  py::class_<cuda::Cublas>(module, "Cublas", "Matrix products that a stream can record. Made in the current context.")
      .def(py::init<const std::string&>(), py::arg("path"))
      .def(
          "matmul",
          [](cuda::Cublas& cublas, std::uintptr_t stream, int number, int batch, int m, int n, int k,
             const cuda::Matrix& a, const cuda::Matrix& b, const cuda::Matrix& out) {
            cublas.use_stream(reinterpret_cast<cuda::Handle>(stream));
            cublas.matmul(static_cast<cuda::Number>(number), batch, m, n, k, a, b, out);
          },
          py::arg("stream"), py::arg("number"), py::arg("batch"), py::arg("m"), py::arg("n"), py::arg("k"),
          py::arg("a"), py::arg("b"), py::arg("out"),
          "Queues out = a @ b, row-major; `number` is 0 float, 1 double, 2 half, 14 bfloat16.");
}

}  // namespace

void bind_device(py::module_& module) {
  cuda_error = PyErr_NewException("evaluator._core.CudaError", PyExc_RuntimeError, nullptr);
  module.attr("CudaError") = py::reinterpret_borrow<py::object>(cuda_error);
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const cuda::DriverError& error) {
      PyErr_SetObject(cuda_error, py::make_tuple(error.what(), error.code).ptr());
    }
  });
  py::register_exception<cuda::DeadlineError>(module, "CudaDeadline", PyExc_RuntimeError);
  bind_classes(module);
}
