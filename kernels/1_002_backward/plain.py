"""One thread per element of each gradient: dA = dC B^T, then dB = A^T dC.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void multiply(const float* a, int a_row, int a_step, const float* b, int b_step, int b_column,
                                    float* out, int rows, int inner, int columns) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= rows || c >= columns) return;
  a += (size_t)r * a_row;
  b += (size_t)c * b_column;
  float sum = 0.0f;
  for (size_t i = 0; i < inner; ++i) sum += a[i * a_step] * b[i * b_step];
  out[(size_t)r * columns + c] = sum;
}
'''
multiply = cp.RawKernel(source, "multiply")


def forward(a, b, grad):
    m, k = a.shape
    n = b.shape[1]
    grad_a, grad_b = cp.empty((m, k), cp.float32), cp.empty((k, n), cp.float32)
    multiply(((k + 31) // 32, (m + 7) // 8), (32, 8), (grad, n, 1, b, 1, n, grad_a, m, n, k))
    multiply(((n + 31) // 32, (k + 7) // 8), (32, 8), (a, 1, k, grad, n, 1, grad_b, k, m, n))
    return grad_a, grad_b
