"""The float64 forms: the oracle on `cuda`. Plain CuPy, and simpler algorithms than the float32 kernels, on purpose."""
