// The kernel of blocks runs move, with a thread for each job.
#include "kernels/card.hpp"
#include "support/card.hpp"

namespace tranship::device {
namespace {

__global__ void move_kernel(const MoveJob* jobs, int count, const unsigned char* source, unsigned char* target) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += gridDim.x * blockDim.x) {
    const MoveJob& job = jobs[i];
    move(job.block, job.move, job.arithmetic, job.width, source + job.source_at, target + job.target_at);
  }
}
}  // namespace

std::vector<unsigned char> moved_on_card(const std::vector<MoveJob>& jobs, const std::vector<unsigned char>& source,
                                         const std::vector<unsigned char>& target, Threads threads) {
  const CardArray<MoveJob> list(jobs);
  const CardArray<unsigned char> from(source);
  const CardArray<unsigned char> to(target);
  if (threads == Threads::many)
    move_kernel<<<static_cast<int>((jobs.size() + 127) / 128), 128>>>(list.data(), int(jobs.size()), from.data(),
                                                                      to.data());
  else
    move_kernel<<<1, 1>>>(list.data(), int(jobs.size()), from.data(), to.data());
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  return to.read();
}

}  // namespace tranship::device
