// The XLA FFI handlers. The headers come from jaxlib and are all that is needed of it.
#include "handlers.hpp"

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_program.hpp"
#include "host_program.hpp"
#include "program_table.hpp"
#include "xla/ffi/api/ffi.h"

namespace calling {
namespace {

namespace ffi = xla::ffi;

struct Buffers {
  std::vector<Memory> inputs, results;
};

Buffers buffers_of(const ffi::RemainingArgs& arguments, const ffi::RemainingRets& results) {
  Buffers buffers;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto buffer = arguments.get<ffi::AnyBuffer>(i);
    if (!buffer.has_value()) throw std::invalid_argument("argument " + std::to_string(i) + " is no array");
    buffers.inputs.push_back({buffer->untyped_data(), buffer->size_bytes()});
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto buffer = results.get<ffi::AnyBuffer>(i);
    if (!buffer.has_value()) throw std::invalid_argument("result " + std::to_string(i) + " is no array");
    buffers.results.push_back({(*buffer)->untyped_data(), (*buffer)->size_bytes()});
  }
  return buffers;
}

// A call that does not fit its program would write beside an array.
void check(const Buffers& buffers, const std::vector<std::size_t>& bytes) {
  std::vector<std::size_t> seen;
  for (const Memory& memory : buffers.inputs) seen.push_back(memory.bytes);
  for (const Memory& memory : buffers.results) seen.push_back(memory.bytes);
  if (seen != bytes) throw std::invalid_argument("the call's arrays are not of the sizes that the program was made for");
}

template <class Program>
std::shared_ptr<Program> find(std::string_view key) {
  auto program = ProgramTable<Program>::instance().find(key);
  if (program == nullptr)
    throw std::invalid_argument("program " + std::string(key) +
                                " is not known to this process: an executable of another one calls it; "
                                "make the function with evaluator.jax_call here and trace it again");
  return program;
}

// Nothing may be thrown through XLA.
template <class Call>
ffi::Error guarded(const Call& call) {
  try {
    call();
    return ffi::Error::Success();
  } catch (const std::invalid_argument& error) {
    return ffi::Error::InvalidArgument(error.what());
  } catch (const std::exception& error) {
    return ffi::Error::Internal(error.what());
  }
}

ffi::Error run_on_host(ffi::RemainingArgs arguments, ffi::RemainingRets results, std::string_view program) {
  return guarded([&] {
    const auto found = find<HostProgram>(program);
    const Buffers buffers = buffers_of(arguments, results);
    check(buffers, found->bytes());
    found->run(buffers.inputs, buffers.results);
  });
}

ffi::Error queue_on_cuda(void* stream, ffi::RemainingArgs arguments, ffi::RemainingRets results,
                         std::string_view program) {
  return guarded([&] {
    const auto found = find<CudaProgram>(program);
    const Buffers buffers = buffers_of(arguments, results);
    check(buffers, found->bytes());
    std::vector<cuda::DevicePointer> addresses;
    for (const auto* some : {&buffers.inputs, &buffers.results})
      for (const Memory& memory : *some) addresses.push_back(reinterpret_cast<cuda::DevicePointer>(memory.data));
    found->queue(stream, addresses, 0, found->steps());
  });
}

ffi::Error refuse(ffi::RemainingArgs, ffi::RemainingRets, std::string_view) {
  return ffi::Error::InvalidArgument(
      "the program was made for another kind of device than XLA runs it on: "
      "pass device='cpu' or device='cuda' to evaluator.jax_call, or move the arrays");
}

// No trait says that a call may be recorded in a command buffer: the first one on a device loads modules.
XLA_FFI_DEFINE_HANDLER(kHost, run_on_host,
                       ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<std::string_view>("program"));
XLA_FFI_DEFINE_HANDLER(kCuda, queue_on_cuda,
                       ffi::Ffi::Bind()
                           .Ctx<ffi::PlatformStream<void*>>()
                           .RemainingArgs()
                           .RemainingRets()
                           .Attr<std::string_view>("program"));
XLA_FFI_DEFINE_HANDLER(kRefusing, refuse,
                       ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<std::string_view>("program"));

}  // namespace

void* host_handler() { return reinterpret_cast<void*>(kHost); }
void* cuda_handler() { return reinterpret_cast<void*>(kCuda); }
void* refusing_handler() { return reinterpret_cast<void*>(kRefusing); }

}  // namespace calling
