"""One thread per output pixel: the sum over input channels.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void pointwise(const float* x, const float* w, float* out, int inputs, int pixels) {
  int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= pixels) return;
  const float* image = x + (size_t)blockIdx.z * inputs * pixels + pixel;
  const float* weight = w + blockIdx.y * inputs;
  float sum = 0.0f;
  for (int c = 0; c < inputs; ++c) sum += weight[c] * image[(size_t)c * pixels];
  out[((size_t)blockIdx.z * gridDim.y + blockIdx.y) * pixels + pixel] = sum;
}
'''
pointwise = cp.RawKernel(source, "pointwise")


def forward(x, weight):
    batch, inputs, height, width = x.shape
    outputs = weight.shape[0]
    pixels = height * width
    out = cp.empty((batch, outputs, height, width), cp.float32)
    pointwise(((pixels + 255) // 256, outputs, batch), (256,), (x, weight, out, inputs, pixels))
    return out
