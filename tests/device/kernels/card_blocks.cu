// Runs the operations beside moves: fill, canonicalise and write_identity. Each job has a thread.
#include "kernels/card.hpp"
#include "support/card.hpp"

namespace tranship::device {
namespace {

__global__ void fill_kernel(const MoveJob* jobs, int count, const unsigned char* source, unsigned char* target) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const MoveJob& job = jobs[i];
  fill(job.block, job.width, job.source_at < 0 ? nullptr : source + job.source_at, target + job.target_at);
}
__global__ void canonicalise_kernel(MoveJob* jobs, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) canonicalise(jobs[i].block, jobs[i].width);
}
__global__ void identity_kernel(const MoveJob* jobs, int count, unsigned char* target) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) write_identity(jobs[i].move, jobs[i].arithmetic, target + jobs[i].target_at);
}

int blocks_for(std::size_t count) {
  return static_cast<int>((count + 127) / 128);
}
void finish() {
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaDeviceSynchronize());
}

}  // namespace

std::vector<unsigned char> filled_on_card(const std::vector<MoveJob>& jobs, const std::vector<unsigned char>& source,
                                          const std::vector<unsigned char>& target) {
  const CardArray<MoveJob> list(jobs);
  const CardArray<unsigned char> from(source);
  const CardArray<unsigned char> to(target);
  fill_kernel<<<blocks_for(jobs.size()), 128>>>(list.data(), int(jobs.size()), from.data(), to.data());
  finish();
  return to.read();
}

std::vector<MoveJob> canonical_on_card(const std::vector<MoveJob>& jobs) {
  const CardArray<MoveJob> list(jobs);
  canonicalise_kernel<<<blocks_for(jobs.size()), 128>>>(list.data(), int(jobs.size()));
  finish();
  return list.read();
}

std::vector<unsigned char> identities_on_card(const std::vector<MoveJob>& jobs,
                                              const std::vector<unsigned char>& target) {
  const CardArray<MoveJob> list(jobs);
  const CardArray<unsigned char> to(target);
  identity_kernel<<<blocks_for(jobs.size()), 128>>>(list.data(), int(jobs.size()), to.data());
  finish();
  return to.read();
}

}  // namespace tranship::device
