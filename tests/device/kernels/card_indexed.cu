// The kernel of rows runs move_indexed, with a thread for each job.
#include "kernels/card.hpp"
#include "support/card.hpp"

namespace tranship::device {
namespace {

__global__ void indexed_kernel(const IndexedJob* jobs, int count, const long long* rows, const unsigned char* source,
                               unsigned char* target) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const IndexedJob& job = jobs[i];
  IndexedBlock block = job.block;
  block.source_rows = job.source_rows_at < 0 ? nullptr : rows + job.source_rows_at;
  block.target_rows = job.target_rows_at < 0 ? nullptr : rows + job.target_rows_at;
  move_indexed(block, job.move, job.arithmetic, job.width, source + job.source_at, target + job.target_at);
}

}  // namespace

std::vector<unsigned char> moved_on_card(const std::vector<IndexedJob>& jobs, const std::vector<long long>& rows,
                                         const std::vector<unsigned char>& source,
                                         const std::vector<unsigned char>& target) {
  const CardArray<IndexedJob> list(jobs);
  const CardArray<long long> indices(rows);
  const CardArray<unsigned char> from(source);
  const CardArray<unsigned char> to(target);
  indexed_kernel<<<static_cast<int>((jobs.size() + 127) / 128), 128>>>(list.data(), int(jobs.size()), indices.data(),
                                                                       from.data(), to.data());
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  return to.read();
}

}  // namespace tranship::device
