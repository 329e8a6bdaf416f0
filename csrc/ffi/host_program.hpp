// A program on the CPU emulator, as XLA calls it: a Python function that hands the buffers to a confined process.
#pragma once
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>

namespace calling {

struct Memory {
  void* data;
  std::size_t bytes;
};

class HostProgram {
 public:
  // `run(inputs, results)` takes lists of memoryviews of bytes; inputs are read-only.
  HostProgram(pybind11::object run, std::vector<std::size_t> bytes) : run_(std::move(run)), bytes_(std::move(bytes)) {}

  // Bytes of every input, then of every result.
  const std::vector<std::size_t>& bytes() const { return bytes_; }

  // Called without the interpreter's lock, by any thread. Throws std::runtime_error with the text of Python's exception.
  void run(const std::vector<Memory>& inputs, const std::vector<Memory>& results) const {
    if (!Py_IsInitialized()) throw std::runtime_error("the Python interpreter has ended");
    const pybind11::gil_scoped_acquire locked;
    try {
      run_(views(inputs, true), views(results, false));
    } catch (pybind11::error_already_set& error) {
      throw std::runtime_error(pybind11::str(error.value()).cast<std::string>());
    }
  }

 private:
  static pybind11::list views(const std::vector<Memory>& memories, bool readonly) {
    static char nothing;  // an array without elements may lie nowhere
    pybind11::list found;
    for (const Memory& memory : memories) {
      void* data = memory.data == nullptr ? &nothing : memory.data;
      found.append(pybind11::memoryview::from_memory(data, static_cast<pybind11::ssize_t>(memory.bytes), readonly));
    }
    return found;
  }

  pybind11::object run_;
  std::vector<std::size_t> bytes_;
};

}  // namespace calling
