"""One warp per row: tiles turned around in shared memory, totals of lanes added up by every lane.

A lane loads and stores every 32nd float4 of a tile of 1,024 elements, so global accesses are coalesced, but adds up 32
neighbours: shared memory turns one order into the other, one float4 in nine left free against bank conflicts. Each lane
then adds up the totals of those before it, which all lanes read alike, and needs no shuffle. Each element is read once
and written once, and no warp waits for another, so that while some work on their tile the loads of others are in
flight. Rows are a multiple of four long at every size.

Techniques: warp per row, shared-memory transposition, float4 loads, several items per thread, shared-memory totals
"""
import cupy as cp

source = r'''
extern "C" __global__ void cumsum_totals(const float4* x, float4* out, int rows, int vectors) {
  __shared__ float4 tiles[4][288];
  __shared__ float totals[4][32];
  int lane = threadIdx.x;
  int r = blockIdx.x * blockDim.y + threadIdx.y;
  if (r >= rows) return;
  const float4* row = x + (size_t)r * vectors;
  float4* y = out + (size_t)r * vectors;
  float4* across = tiles[threadIdx.y] + lane + lane / 8;
  float4* along = tiles[threadIdx.y] + 9 * lane;
  float* total = totals[threadIdx.y];
  float carry = 0.0f;
  for (int i = lane; i < vectors + lane; i += 256) {
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
      across[36 * j] = i + 32 * j < vectors ? row[i + 32 * j] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    __syncwarp();
    float4 v[8];
    float own = 0.0f;
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
      v[j] = along[j];
      v[j].x += own;
      v[j].y += v[j].x;
      v[j].z += v[j].y;
      v[j].w += v[j].z;
      own = v[j].w;
    }
    total[lane] = own;
    __syncwarp();
    float before = carry;
    #pragma unroll
    for (int k = 0; k < 32; ++k) {
      if (k < lane) before += total[k];
      carry += total[k];
    }
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
      along[j] = make_float4(before + v[j].x, before + v[j].y, before + v[j].z, before + v[j].w);
    }
    __syncwarp();
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
      if (i + 32 * j < vectors) y[i + 32 * j] = across[36 * j];
    }
  }
}
'''
cumsum_totals = cp.RawKernel(source, "cumsum_totals")


def forward(x):
    rows, columns = x.shape
    out = cp.empty((rows, columns), cp.float32)
    cumsum_totals(((rows + 3) // 4,), (32, 4), (x, out, rows, columns // 4))
    return out
