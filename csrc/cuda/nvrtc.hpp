// NVRTC, NVIDIA's run-time compiler of CUDA C++, found by dlopen: text to cubin, with no GPU and no toolkit.
#pragma once
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "dynamic_library.hpp"

namespace cuda {

// What NVRTC says of a text that does not compile.
struct CompileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Cubin {
  std::string bytes;
  std::string log;                             // warnings, and what ptxas says with --ptxas-options=-v
  std::map<std::string, std::string> lowered;  // name expression -> name in the cubin
};

class Nvrtc {
 public:
  // Throws std::runtime_error where `path` is no NVRTC of CUDA 12 or newer.
  explicit Nvrtc(const std::string& path) : library_(path) {
    library_.find("nvrtcVersion", version_);
    library_.find("nvrtcGetErrorString", error_string_);
    library_.find("nvrtcGetNumSupportedArchs", architecture_count_);
    library_.find("nvrtcGetSupportedArchs", architectures_);
    library_.find("nvrtcCreateProgram", create_);
    library_.find("nvrtcDestroyProgram", destroy_);
    library_.find("nvrtcAddNameExpression", add_name_);
    library_.find("nvrtcGetLoweredName", lowered_name_);
    library_.find("nvrtcCompileProgram", compile_);
    library_.find("nvrtcGetProgramLogSize", log_size_);
    library_.find("nvrtcGetProgramLog", log_);
    library_.find("nvrtcGetCUBINSize", cubin_size_);
    library_.find("nvrtcGetCUBIN", cubin_);
    library_.try_find("nvrtcInstallBundledHeaders", install_headers_);
  }

  std::pair<int, int> version() const {
    int major = 0, minor = 0;
    check(version_(&major, &minor), "nvrtcVersion");
    return {major, minor};
  }

  // Compute capabilities as integers: 90 is sm_90.
  std::vector<int> architectures() const {
    int count = 0;
    check(architecture_count_(&count), "nvrtcGetNumSupportedArchs");
    std::vector<int> found(static_cast<std::size_t>(count));
    if (count > 0) check(architectures_(found.data()), "nvrtcGetSupportedArchs");
    return found;
  }

  // Writes the headers that NVRTC 13.3 and newer carry into a folder, once; false where it carries none.
  bool install_headers(const std::string& folder) const {
    if (install_headers_ == nullptr) return false;
    const char* message = nullptr;
    const int result = install_headers_(folder.c_str(), 0, &message);  // 0: nothing where this version is there
    if (result != 0)
      throw std::runtime_error("nvrtcInstallBundledHeaders(" + folder +
                               ") failed: " + (message ? message : name(result)));
    return true;
  }

  // `headers`: text by include name, found before any folder. Throws CompileError with the log.
  Cubin compile(const std::string& source, const std::string& file, const std::vector<std::string>& options,
                const std::map<std::string, std::string>& headers, const std::vector<std::string>& names) const {
    std::vector<const char*> header_texts, header_names;
    for (const auto& [include, text] : headers) {
      header_names.push_back(include.c_str());
      header_texts.push_back(text.c_str());
    }
    Program program(*this);
    check(create_(&program.handle, source.c_str(), file.c_str(), static_cast<int>(headers.size()), header_texts.data(),
                  header_names.data()),
          "nvrtcCreateProgram");
    for (const std::string& expression : names)
      check(add_name_(program.handle, expression.c_str()), "nvrtcAddNameExpression");
    std::vector<const char*> words;
    for (const std::string& option : options) words.push_back(option.c_str());
    const int result = compile_(program.handle, static_cast<int>(words.size()), words.data());
    Cubin made;
    made.log = text(program.handle, log_size_, log_);
    if (result != 0) throw CompileError(made.log.empty() ? name(result) : made.log);
    for (const std::string& expression : names) {
      const char* found = nullptr;
      check(lowered_name_(program.handle, expression.c_str(), &found), "nvrtcGetLoweredName");
      made.lowered[expression] = found;
    }
    std::size_t size = 0;
    check(cubin_size_(program.handle, &size), "nvrtcGetCUBINSize");
    made.bytes.resize(size);
    check(cubin_(program.handle, made.bytes.data()), "nvrtcGetCUBIN");
    return made;
  }

 private:
  using Handle = void*;

  // A program that is destroyed with the scope, whatever was thrown.
  struct Program {
    explicit Program(const Nvrtc& owner) : nvrtc(owner) {}
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program() {
      if (handle != nullptr) nvrtc.destroy_(&handle);
    }
    const Nvrtc& nvrtc;
    Handle handle = nullptr;
  };

  std::string name(int result) const { return error_string_(result); }

  void check(int result, const char* call) const {
    if (result != 0) throw std::runtime_error(std::string(call) + " failed: " + name(result));
  }

  std::string text(Handle program, int (*size_of)(Handle, std::size_t*), int (*read)(Handle, char*)) const {
    std::size_t size = 0;
    check(size_of(program, &size), "nvrtcGetProgramLogSize");
    std::string found(size, '\0');
    if (size > 0) check(read(program, found.data()), "nvrtcGetProgramLog");
    return found.substr(0, found.find('\0'));
  }

  DynamicLibrary library_;
  int (*version_)(int*, int*);
  const char* (*error_string_)(int);
  int (*architecture_count_)(int*);
  int (*architectures_)(int*);
  int (*create_)(Handle*, const char*, const char*, int, const char* const*, const char* const*);
  int (*destroy_)(Handle*);
  int (*add_name_)(Handle, const char*);
  int (*lowered_name_)(Handle, const char*, const char**);
  int (*compile_)(Handle, int, const char* const*);
  int (*log_size_)(Handle, std::size_t*);
  int (*log_)(Handle, char*);
  int (*cubin_size_)(Handle, std::size_t*);
  int (*cubin_)(Handle, char*);
  int (*install_headers_)(const char*, unsigned, const char**);
};

}  // namespace cuda
