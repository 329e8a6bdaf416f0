"""The sum over the outputs of a linear layer is x . (column sums of the weight) + (sum of the bias), and no product.

One column remains after the sum, and maximum, mean and logarithm of the sum of exponentials of one finite value are
that value. So the weight is read once, which is nearly all the time: blocks take 256 columns of 256 rows, a thread two
neighbouring columns with sixteen loads in flight, and meet in one atomic per column and block; all blocks fit on a GPU
at once. The bias is one more column. Then a block per row of x multiplies and adds. Rows have an even length.

Techniques: algebra, float2 loads, atomics, block per row, warp shuffles
"""
import cupy as cp

source = r'''
__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

// sums[width] is that of the bias.
extern "C" __global__ void column_sums(const float2* w, const float* bias, float* sums, int outputs, int width) {
  int pair = blockIdx.x * 128 + threadIdx.x;
  int first = blockIdx.y * 256, last = min(first + 256, outputs);
  if (blockIdx.x == 0) {
    float sum = 0.0f;
    for (int o = first + threadIdx.x; o < last; o += 128) sum += bias[o];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) atomicAdd(&sums[width], sum);
  }
  if (pair >= width / 2) return;
  float2 sum = make_float2(0.0f, 0.0f);
  #pragma unroll 16
  for (int o = first; o < last; ++o) {
    float2 v = w[(size_t)o * (width / 2) + pair];
    sum.x += v.x;
    sum.y += v.y;
  }
  atomicAdd(&sums[2 * pair], sum.x);
  atomicAdd(&sums[2 * pair + 1], sum.y);
}

extern "C" __global__ void weigh(const float* x, const float* sums, float* out, int width) {
  __shared__ float part[8];
  int t = threadIdx.x;
  const float2* row = (const float2*)(x + (size_t)blockIdx.x * width);
  const float2* factors = (const float2*)sums;
  float a = 0.0f, b = 0.0f;
  #pragma unroll 8
  for (int i = t; i < width / 2; i += 256) {
    a += row[i].x * factors[i].x;
    b += row[i].y * factors[i].y;
  }
  a = warp_sum(a + b);
  if (t % 32 == 0) part[t / 32] = a;
  __syncthreads();
  if (t > 0) return;
  for (int w = 1; w < 8; ++w) a += part[w];
  out[blockIdx.x] = a + sums[width];
}
'''
column_sums = cp.RawKernel(source, "column_sums")
weigh = cp.RawKernel(source, "weigh")


def forward(x, weight, bias):
    rows, width = x.shape
    outputs = weight.shape[0]
    sums = cp.zeros((width + 1,), cp.float32)
    out = cp.empty((rows, 1), cp.float32)
    column_sums(((width + 255) // 256, (outputs + 255) // 256), (128,), (weight, bias, sums, outputs, width))
    weigh((rows,), (256,), (x, sums, out, width))
    return out
