// What XLA calls. Each is a handler of the typed FFI, as an address for a capsule.
#pragma once

namespace calling {

void* host_handler();     // runs a program of ProgramTable<HostProgram>
void* cuda_handler();     // queues a program of ProgramTable<CudaProgram> on XLA's stream
void* refusing_handler(); // for the platform that a program was not made for: says so

}  // namespace calling
