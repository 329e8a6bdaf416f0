# task: 1_019
"""Templates that double at each of many levels."""

import cupy as cp

source = r'''
template <int depth, int path> struct Bomb {
  static constexpr int value = Bomb<depth - 1, 2 * path>::value + Bomb<depth - 1, 2 * path + 1>::value;
};
template <int path> struct Bomb<0, path> { static constexpr int value = path & 1; };
extern "C" __global__ void apply(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f) + 0.0f * Bomb<28, 0>::value;
}
'''
apply = cp.RawKernel(source, "apply")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    apply(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
