// ScaLAPACK's pdgemr2d: block-cyclic to block-cyclic. Its local arrays are column-major, so a row-major matrix is
// described as its transpose: rows and columns of all descriptors are exchanged.
#include <algorithm>
#include <string>

#include <contest/methods.hpp>
#include <mpi.h>

#include "mpi_program.hpp"

extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridexit(int context);
void Cpdgemr2d(int rows, int columns, double* a, int a_row, int a_column, int* a_descriptor, double* b, int b_row,
               int b_column, int* b_descriptor, int context);
}

namespace {

using namespace contest;

class Gemr2d final : public RedistributionMethod {
 public:
  Gemr2d(const Work& work, int rank)
      : RedistributionMethod(work, rank), in_(memory(from_.size)), out_(memory(to_.size)) {
    use(in_.get(), out_.get());
    describe(Side::from, from_, from_descriptor_);
    describe(Side::to, to_, to_descriptor_);
  }
  ~Gemr2d() override {
    Cblacs_gridexit(from_descriptor_[1]);
    Cblacs_gridexit(to_descriptor_[1]);
  }
  std::string name() const override { return ""; }
  void run() override {
    Cpdgemr2d(int(work_.axes[1].extent), int(work_.axes[0].extent), source_, 1, 1, from_descriptor_, target_, 1, 1,
              to_descriptor_, from_descriptor_[1]);
  }

 private:
  void describe(Side side, const Local& local, int* descriptor) const {
    const auto deal = [&](int d) { return side == Side::from ? work_.axes[d].from : work_.axes[d].to; };
    const auto block = [&](int d) {
      const Deal dealt = deal(d);
      return int(dealt.block > 0 ? dealt.block : (work_.axes[d].extent + dealt.parts - 1) / dealt.parts);
    };
    int context = 0;
    Cblacs_get(-1, 0, &context);
    // Column-major order of ranks is row-major order of ours.
    Cblacs_gridinit(&context, "C", int(deal(1).parts), int(deal(0).parts));
    const int lines[9] = {1,
                          context,
                          int(work_.axes[1].extent),
                          int(work_.axes[0].extent),
                          block(1),
                          block(0),
                          0,
                          0,
                          int(std::max<std::int64_t>(1, local.extents[1]))};
    std::copy(std::begin(lines), std::end(lines), descriptor);
  }

  Memory in_, out_;
  int from_descriptor_[9] = {};
  int to_descriptor_[9] = {};
};

Methods methods_for(const Work& work, int rank) {
  Methods methods;
  if (work.task == Task::redistribution && work.dims == 2 && work.order == Order::same)
    methods.push_back(std::make_unique<Gemr2d>(work, rank));
  return methods;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = act_under_mpi(argc, argv, methods_for);
  MPI_Finalize();
  return status;
}
