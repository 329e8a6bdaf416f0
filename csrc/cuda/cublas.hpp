// cuBLAS, found by dlopen: matrix products that can be recorded into a graph. CuPy refuses to call it while a stream is
// captured; with a workspace of our own it allocates nothing, so there is no reason to.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

#include "driver.hpp"
#include "dynamic_library.hpp"

namespace cuda {

// Element types by their cudaDataType; sums are kept in float for all but double, and float stays float (no TF32).
enum class Number { kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kBfloat16 = 14 };

// One operand of a batch of products, row-major: rows x columns as stored, or as their transpose.
struct Matrix {
  DevicePointer address;
  bool transposed;      // the stored matrix is the transpose of the operand
  int leading;          // elements from one stored row to the next
  long long stride;     // elements from one matrix of the batch to the next; 0 where all share one
};

class Cublas {
 public:
  // `path`: libcublas. Uses the context that is current. Throws std::runtime_error where it cannot be loaded.
  explicit Cublas(const std::string& path) : library_(path), driver_(Driver::instance()) {
    int (*create)(Handle*);
    library_.find("cublasCreate_v2", create);
    library_.find("cublasDestroy_v2", destroy_);
    library_.find("cublasSetStream_v2", set_stream_);
    library_.find("cublasSetWorkspace_v2", set_workspace_);
    library_.find("cublasGemmStridedBatchedEx", gemm_);
    driver_.check(driver_.memory_allocate(&workspace_, kWorkspaceBytes), "cuMemAlloc");
    const int status = create(&handle_);
    if (status != 0) driver_.memory_free(workspace_);
    check(status, "cublasCreate");
  }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;
  ~Cublas() {
    destroy_(handle_);
    driver_.memory_free(workspace_);
  }

  // Products go to this stream from now on.
  void use_stream(Handle stream) {
    if (has_stream_ && stream == stream_) return;
    check(set_stream_(handle_, stream), "cublasSetStream");  // which also takes the workspace away
    check(set_workspace_(handle_, reinterpret_cast<void*>(workspace_), kWorkspaceBytes), "cublasSetWorkspace");
    stream_ = stream;
    has_stream_ = true;
  }

  // Queues out[i] = a[i] @ b[i] for every i of the batch: a [m, k], b [k, n], out [m, n], all row-major.
  void matmul(Number number, int batch, int m, int n, int k, const Matrix& a, const Matrix& b, const Matrix& out) {
    const double one_double = 1.0, zero_double = 0.0;
    const float one = 1.0f, zero = 0.0f;
    const bool wide = number == Number::kFloat64;
    const void* alpha = wide ? static_cast<const void*>(&one_double) : &one;
    const void* beta = wide ? static_cast<const void*>(&zero_double) : &zero;
    const int type = static_cast<int>(number), compute = wide ? kComputeDouble : kComputeFloat;
    // cuBLAS stores by columns: what it takes for the transpose of `out` is the product of the transposes, b first.
    check(gemm_(handle_, b.transposed, a.transposed, n, m, k, alpha, pointer(b), type, b.leading, b.stride, pointer(a),
                type, a.leading, a.stride, beta, pointer(out), type, out.leading, out.stride, batch, compute, kDefault),
          "cublasGemmStridedBatchedEx");
  }

 private:
  static constexpr std::size_t kWorkspaceBytes = 32 << 20;  // what cuBLAS itself takes on Hopper
  static constexpr int kComputeFloat = 68, kComputeDouble = 70, kDefault = -1;

  static void* pointer(const Matrix& matrix) { return reinterpret_cast<void*>(matrix.address); }
  static void check(int status, const char* call) {
    if (status != 0) throw std::runtime_error(std::string(call) + " failed with status " + std::to_string(status));
  }

  DynamicLibrary library_;
  const Driver& driver_;
  Handle handle_ = nullptr, stream_ = nullptr;
  bool has_stream_ = false;
  DevicePointer workspace_ = 0;
  int (*destroy_)(Handle);
  int (*set_stream_)(Handle, Handle);
  int (*set_workspace_)(Handle, void*, std::size_t);
  int (*gemm_)(Handle, int, int, int, int, int, const void*, const void*, int, int, long long, const void*, int, int,
               long long, const void*, void*, int, int, long long, int, int, int);
};

}  // namespace cuda
