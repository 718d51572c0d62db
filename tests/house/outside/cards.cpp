// A program outside that is linked by what pkg-config says of tranship-cuda.
#include <cstdio>

#include <tranship/cuda/cuda_devices.hpp>
#include <tranship/memory/buffer.hpp>

int main() {
  const tranship::Devices devices({.kinds = {tranship::CudaDevices{}}});
  std::printf("%d cards\n", int(devices.list().size()) - 1);
}
