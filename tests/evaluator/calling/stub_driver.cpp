// A CUDA driver whose device memory is the host's: fills and copies are made at once, launches are only written down.
// Streams 0x10 to 0x1f belong to context 1, 0x20 to 0x2f to context 2. What is not here answers with status 999.
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Function {
  std::string name;
  long context;
};

std::mutex mutex;
std::string written;
std::map<std::string, std::vector<int>> parameters;  // bytes of each, by kernel
thread_local long current = 0;

void write(const std::string& line) {
  const std::lock_guard<std::mutex> lock(mutex);
  written += line + "\n";
}

std::string hex(const void* from, int bytes) {
  const auto* at = static_cast<const unsigned char*>(from);
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += "0123456789abcdef"[at[i] >> 4], text += "0123456789abcdef"[at[i] & 15];
  return text;
}

template <class T>
void fill(std::uint64_t to, T value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) std::memcpy(reinterpret_cast<char*>(to) + i * sizeof value, &value, sizeof value);
}

}  // namespace

extern "C" {

const char* stub_log() { return written.c_str(); }
void stub_parameters(const char* kernel, const int* bytes, int count) { parameters[kernel].assign(bytes, bytes + count); }

int cuInit(unsigned) { return 0; }
int cuGetErrorName(int, const char** name) { return *name = "STUB_ERROR", 0; }
int cuGetErrorString(int, const char** text) { return *text = "of the stub", 0; }

int cuStreamGetCtx(void* stream, void** context) {
  *context = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(stream) >> 4);
  return *context == nullptr ? 201 : 0;
}
int cuCtxSetCurrent(void* context) { return current = reinterpret_cast<long>(context), 0; }

int cuModuleLoadData(void** module, const void* cubin) {
  if (std::strncmp(static_cast<const char*>(cubin), "bad", 3) == 0) return 209;
  write("load in " + std::to_string(current));
  return *module = reinterpret_cast<void*>(current), 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  return *function = new Function{name, reinterpret_cast<long>(module)}, 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  write("set " + std::to_string(attribute) + " of " + static_cast<Function*>(function)->name + " to " + std::to_string(value));
  return 0;
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** arguments, void**) {
  const auto* kernel = static_cast<Function*>(function);
  if (kernel->context != current) return 400;  // a kernel of another context
  std::string line = kernel->name;
  for (const unsigned n : {gx, gy, gz, bx, by, bz, shared}) line += " " + std::to_string(n);
  line += " on " + hex(&stream, 1);
  for (const int bytes : parameters[kernel->name]) line += " " + hex(*arguments++, bytes);
  return write(line), 0;
}

int cuMemsetD8Async(std::uint64_t to, unsigned char value, std::size_t n, void*) { return fill(to, value, n), 0; }
int cuMemsetD16Async(std::uint64_t to, unsigned short value, std::size_t n, void*) { return fill(to, value, n), 0; }
int cuMemsetD32Async(std::uint64_t to, unsigned value, std::size_t n, void*) { return fill(to, value, n), 0; }
int cuMemsetD2D32Async(std::uint64_t to, std::size_t pitch, unsigned value, std::size_t width, std::size_t height, void*) {
  for (std::size_t row = 0; row < height; ++row) fill(to + row * pitch, value, width);
  return 0;
}
int cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes, void*) {
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return 0;
}

}  // extern "C"
