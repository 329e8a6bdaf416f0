// A shared library that is found while the program runs, so that nothing of CUDA is needed to build or to import.
#pragma once
#include <stdexcept>
#include <string>

#include <dlfcn.h>

namespace cuda {

class DynamicLibrary {
 public:
  // `path`: a file, or a name that the system's loader knows. Throws std::runtime_error with the loader's reason.
  explicit DynamicLibrary(const std::string& path) : path_(path), handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw std::runtime_error("cannot load " + path + ": " + dlerror());
  }
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;
  // Never unloaded: NVRTC and the driver keep threads and exit handlers of their own.

  // Stores the function's address in `function`; throws where the library is too old to have it.
  template <class Function>
  void find(const char* name, Function& function) const {
    if (!try_find(name, function)) throw std::runtime_error(path_ + " has no function " + name + ": it is too old");
  }

  // As `find`, but leaves a null pointer and returns false where there is no such function.
  template <class Function>
  bool try_find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    return function != nullptr;
  }

 private:
  std::string path_;
  void* handle_;
};

}  // namespace cuda
