// Global Arrays: GA_Copy between arrays that are dealt out in other blocks, GA_Transpose into the transposed array.
#include <string>
#include <vector>

#include <contest/methods.hpp>
#include <ga.h>
#include <macdecls.h>
#include <mpi.h>

#include "mpi_program.hpp"

namespace {

using namespace contest;

class Copy final : public RedistributionMethod {
 public:
  Copy(const Work& work, int rank) : RedistributionMethod(work, rank) {
    char source_name[] = "source", target_name[] = "target";
    a_ = create(Side::from, source_name);
    b_ = create(Side::to, target_name);
    use(part_of(a_), part_of(b_));
  }
  ~Copy() override {
    GA_Destroy(a_);
    GA_Destroy(b_);
  }
  std::string name() const override { return ""; }
  void write(double salt) override {
    RedistributionMethod::write(salt);
    GA_Sync();  // not timed
  }
  void run() override {
    if (work_.order == Order::same)
      GA_Copy(a_, b_);
    else
      GA_Transpose(a_, b_);
  }

 private:
  int create(Side side, char* name) const {
    int extents[dims_max], parts[dims_max];
    std::vector<int> starts;
    for (int i = 0; i < work_.dims; ++i) {
      // The transposed target is an array with its dimensions exchanged.
      const bool exchanged = side == Side::to && work_.order == Order::transposed;
      const Axis& axis = work_.axes[exchanged ? work_.dims - 1 - i : i];
      const Deal& deal = side == Side::from ? axis.from : axis.to;
      extents[i] = int(axis.extent);
      parts[i] = int(deal.parts);
      for (std::int64_t part = 0; part < deal.parts; ++part)
        starts.push_back(int(owned_cells(axis, side, part).front()));
    }
    return NGA_Create_irreg(C_DBL, work_.dims, extents, name, parts, starts.data());
  }
  double* part_of(int array) const {
    int low[dims_max], high[dims_max], pitches[dims_max];
    double* data = nullptr;
    NGA_Distribution(array, rank_, low, high);
    NGA_Access(array, low, high, &data, pitches);
    std::size_t bytes = sizeof(double);
    for (int d = 0; d < work_.dims; ++d) bytes *= std::size_t(high[d] - low[d] + 1);
    ask_for_huge_pages(data, bytes);
    return data;
  }

  int a_ = 0, b_ = 0;
};

bool can(const Work& work) {
  bool blocks_only = work.task == Task::redistribution;
  for (int d = 0; d < work.dims; ++d)
    blocks_only = blocks_only && work.axes[d].from.block == 0 && work.axes[d].to.block == 0;
  return blocks_only;
}

Methods methods_for(const Work& work, int rank) {
  Methods methods;
  if (can(work)) methods.push_back(std::make_unique<Copy>(work, rank));
  return methods;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  GA_Initialize();
  // Room for what GA_Transpose sets aside, a rank's part; not touched before.
  constexpr int stack_elements = 1 << 26, heap_elements = 1 << 20;
  MA_init(C_DBL, stack_elements, heap_elements);
  const int status = act_under_mpi(argc, argv, methods_for);
  GA_Terminate();
  MPI_Finalize();
  return status;
}
