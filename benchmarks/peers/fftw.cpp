// FFTW's distributed transpose: rows to columns, left in the order of either side. Works from row slabs to column
// slabs.
#include <string>

#include <contest/methods.hpp>
#include <contest/streamed.hpp>
#include <fftw3-mpi.h>
#include <mpi.h>

#include "mpi_program.hpp"

namespace {

using namespace contest;

class Transpose final : public RedistributionMethod {
 public:
  Transpose(const Work& work, int rank) : RedistributionMethod(work, rank) {
    const std::ptrdiff_t rows = work.axes[0].extent, columns = work.axes[1].extent;
    std::ptrdiff_t local_rows = 0, first_row = 0, local_columns = 0, first_column = 0;
    const std::ptrdiff_t elements =
        fftw_mpi_local_size_many_transposed(2, sizes(rows, columns), 1, FFTW_MPI_DEFAULT_BLOCK, FFTW_MPI_DEFAULT_BLOCK,
                                            MPI_COMM_WORLD, &local_rows, &first_row, &local_columns, &first_column);
    in_ = memory(elements);
    out_ = memory(elements);
    use(in_.get(), out_.get());
    // "Transposed out" is transposed twice: columns are dealt out, in the order of the source.
    const unsigned flags = work.order == Order::same ? FFTW_MEASURE | FFTW_MPI_TRANSPOSED_OUT : FFTW_MEASURE;
    plan_ = fftw_mpi_plan_many_transpose(rows, columns, 1, FFTW_MPI_DEFAULT_BLOCK, FFTW_MPI_DEFAULT_BLOCK, in_.get(),
                                         out_.get(), MPI_COMM_WORLD, flags);
  }
  ~Transpose() override { fftw_destroy_plan(plan_); }
  std::string name() const override { return ""; }
  void run() override { fftw_execute(plan_); }

 private:
  const std::ptrdiff_t* sizes(std::ptrdiff_t rows, std::ptrdiff_t columns) {
    sizes_[0] = rows, sizes_[1] = columns;
    return sizes_;
  }

  std::ptrdiff_t sizes_[2] = {};
  Memory in_, out_;
  fftw_plan plan_ = nullptr;
};

bool can(const Work& work) {
  const Axis& rows = work.axes[0];
  const Axis& columns = work.axes[1];
  return work.task == Task::redistribution && work.dims == 2 && rows.from.parts == work.ranks && rows.from.block == 0 &&
         columns.from.parts == 1 && rows.to.parts == 1 && columns.to.parts == work.ranks && columns.to.block == 0;
}

Methods methods_for(const Work& work, int rank) {
  if (work.task == Task::stream) return streamed(work, methods_for(frame_of(work), rank));
  Methods methods;
  if (can(work)) methods.push_back(std::make_unique<Transpose>(work, rank));
  return methods;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  fftw_mpi_init();
  const int status = act_under_mpi(argc, argv, methods_for);
  fftw_mpi_cleanup();
  MPI_Finalize();
  return status;
}
