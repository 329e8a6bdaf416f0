// Python binding of what calls verified programs: `_core.CudaProgram`, and the handlers that XLA is given.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "cuda_program.hpp"
#include "handlers.hpp"
#include "host_program.hpp"
#include "program_table.hpp"

namespace py = pybind11;
using calling::CudaProgram;
using calling::HostProgram;
using calling::Place;

namespace {

using Pair = std::pair<std::size_t, std::uint64_t>;  // buffer, offset in bytes

Place place(const Pair& pair) { return {pair.first, pair.second}; }

void add_launch(CudaProgram& program, std::size_t module, std::string kernel, std::array<unsigned, 3> grid,
                std::array<unsigned, 3> block, unsigned shared_bytes,
                const std::vector<std::variant<Pair, std::string>>& arguments) {
  calling::LaunchStep step{module, std::move(kernel), grid, block, shared_bytes, {}};
  for (const auto& argument : arguments) {
    if (const auto* pair = std::get_if<Pair>(&argument)) step.arguments.emplace_back(place(*pair));
    else step.arguments.emplace_back(std::get<std::string>(argument));
  }
  program.add(std::move(step));
}

void bind_cuda_program(py::module_& module) {
  constexpr const char* kProgram =
      R"(Compiled steps for any stream. Places are (buffer, offset in bytes); buffers are the inputs, the results, then
scratch memory, with so many `bytes` each. Needs no GPU until it is called. Raises CudaError for a failed driver call.)";
  py::class_<CudaProgram, std::shared_ptr<CudaProgram>>(module, "CudaProgram", kProgram)
      .def(py::init([](const std::vector<py::bytes>& cubins, std::vector<std::size_t> bytes, bool has_globals) {
             return std::make_shared<CudaProgram>(std::vector<std::string>(cubins.begin(), cubins.end()),
                                                  std::move(bytes), has_globals);
           }),
           py::arg("cubins"), py::arg("bytes"), py::arg("has_globals"),
           "`has_globals`: kernels write to variables of their modules, which then are loaded once for every stream.")
      .def("add_launch", &add_launch, py::arg("module"), py::arg("kernel"), py::arg("grid"), py::arg("block"),
           py::arg("shared_bytes"), py::arg("arguments"), "`arguments`: places, or the bytes of a number.")
      .def(
          "add_fill",
          [](CudaProgram& program, const Pair& to, const py::bytes& pattern, std::size_t count) {
            program.add(calling::FillStep{place(to), std::string(pattern), count});
          },
          py::arg("to"), py::arg("pattern"), py::arg("count"))
      .def(
          "add_copy",
          [](CudaProgram& program, const Pair& from, const Pair& to, std::size_t bytes) {
            program.add(calling::CopyStep{place(from), place(to), bytes});
          },
          py::arg("source"), py::arg("target"), py::arg("bytes"))
      .def(
          "add_call", [](CudaProgram& program, calling::CallStep call) { program.add(std::move(call)); },
          py::arg("call"), "`call(stream, buffers)` queues what it likes, on buffers at these addresses.")
      .def_property_readonly("steps", &CudaProgram::steps)
      .def_property_readonly("bytes", &CudaProgram::bytes)
      .def(
          "queue",
          [](const CudaProgram& program, std::uintptr_t stream, const std::vector<cuda::DevicePointer>& buffers,
             std::size_t first, std::size_t last) {
            if (buffers.size() != program.bytes().size())
              throw std::invalid_argument("the program has " + std::to_string(program.bytes().size()) +
                                          " buffers, got " + std::to_string(buffers.size()));
            program.queue(reinterpret_cast<cuda::Handle>(stream), buffers, first, last);
          },
          py::arg("stream"), py::arg("buffers"), py::arg("first"), py::arg("last"),
          "Queues steps [first, last) on a stream, on buffers at these addresses.");
}

}  // namespace

void bind_ffi(py::module_& module) {
  bind_cuda_program(module);
  module.def(
      "keep_cuda_program",
      [](const std::string& key, std::shared_ptr<CudaProgram> program) {
        calling::ProgramTable<CudaProgram>::instance().add(key, std::move(program));
      },
      py::arg("key"), py::arg("program"), "XLA may call it by this key for as long as the process lives.");
  module.def(
      "keep_host_program",
      [](const std::string& key, py::object run, std::vector<std::size_t> bytes) {
        calling::ProgramTable<HostProgram>::instance().add(
            key, std::make_shared<HostProgram>(std::move(run), std::move(bytes)));
      },
      py::arg("key"), py::arg("run"), py::arg("bytes"),
      "XLA may call `run(inputs, results)`, on lists of memoryviews, by this key for as long as the process lives.");
  module.def("xla_handlers", [] {
    py::dict handlers;
    handlers["cpu"] = py::capsule(calling::host_handler());
    handlers["cuda"] = py::capsule(calling::cuda_handler());
    handlers["refusing"] = py::capsule(calling::refusing_handler());
    return handlers;
  }, "Handlers of XLA's typed FFI as capsules, for jax.ffi.register_ffi_target; attribute `program`: the key.");
}
