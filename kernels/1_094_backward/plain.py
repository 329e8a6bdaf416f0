"""One thread per pair of elements; the gradients differ in sign alone.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void mse_backward(const float* predictions, const float* targets, const float* grad_output,
                                        float* grad_predictions, float* grad_targets, long long size) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= size) return;
  float grad = (predictions[i] - targets[i]) * (2.0f * grad_output[0] / size);
  grad_predictions[i] = grad;
  grad_targets[i] = -grad;
}
'''
mse_backward = cp.RawKernel(source, "mse_backward")


def forward(predictions, targets, grad_output):
    size = predictions.size
    grads = cp.empty(predictions.shape, cp.float32), cp.empty(predictions.shape, cp.float32)
    mse_backward(((size + 255) // 256,), (256,), (predictions, targets, grad_output, *grads, size))
    return grads
