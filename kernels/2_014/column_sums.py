"""The sum over columns of x @ weight.T is x @ (column sums of weight): a matrix-vector product.

Summing the weight over its rows first leaves one multiply-add per element of x in place of `hidden`. The column sums are taken
by blocks of 64 rows, coalesced along the row, and meet in one atomic per column and block; then one warp per row of x
multiplies and adds. Halving and the factor 1.5 are one multiplication by 0.75 at the end. The result differs from the
reference in rounding only.

Techniques: algebra, atomics, warp per row, warp shuffles
"""
import cupy as cp

source = r'''
extern "C" __global__ void column_sums(const float* w, float* sums, int hidden, int width) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= width) return;
  int first = blockIdx.y * 64;
  int last = min(first + 64, hidden);
  float sum = 0.0f;
  #pragma unroll 8
  for (int h = first; h < last; ++h) sum += w[(size_t)h * width + column];
  atomicAdd(&sums[column], sum);
}

extern "C" __global__ void weigh(const float* x, const float* sums, float* out, int rows, int width) {
  int r = blockIdx.x * blockDim.y + threadIdx.y;
  if (r >= rows) return;
  const float* row = x + (size_t)r * width;
  float total = 0.0f;
  for (int i = threadIdx.x; i < width; i += 32) total += row[i] * sums[i];
  for (int d = 16; d > 0; d /= 2) total += __shfl_down_sync(0xffffffffu, total, d);
  if (threadIdx.x == 0) out[r] = 0.75f * total;
}
'''
column_sums = cp.RawKernel(source, "column_sums")
weigh = cp.RawKernel(source, "weigh")


def forward(x, weight):
    rows, width = x.shape
    hidden = weight.shape[0]
    sums = cp.zeros((width,), cp.float32)
    out = cp.empty((rows, 1), cp.float32)
    column_sums(((width + 127) // 128, (hidden + 63) // 64), (128,), (weight, sums, hidden, width))
    weigh(((rows + 3) // 4,), (32, 4), (x, sums, out, rows, width))
    return out
