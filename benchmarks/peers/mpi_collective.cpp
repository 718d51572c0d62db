// Collective operations with MPI: its calls, and loads and stores in a shared window.
#include <contest/collective.hpp>
#include <contest/memory.hpp>

#include "mpi_methods.hpp"
#include "mpi_window.hpp"

namespace contest {
namespace {

const char* name_of(Collective collective) {
  constexpr const char* names[] = {"Allreduce", "Allgather", "Reduce_scatter_block", "Alltoall"};
  return names[int(collective)];
}

class Call final : public CollectiveMethod {
 public:
  Call(const Work& work, int rank)
      : CollectiveMethod(work, rank, name_of(work.collective)),
        input_memory_(memory(sizes_.input, page_bytes)),
        output_memory_(memory(sizes_.output, page_bytes)) {
    use(input_memory_.get(), output_memory_.get());
  }

 private:
  static constexpr std::size_t page_bytes = 4096;

  void operate() override {
    const int part = int(sizes_.part);
    switch (work_.collective) {
      case Collective::all_reduce:
        MPI_Allreduce(input_, output_, part, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        return;
      case Collective::all_gather:
        MPI_Allgather(input_, part, MPI_DOUBLE, output_, part, MPI_DOUBLE, MPI_COMM_WORLD);
        return;
      case Collective::reduce_scatter:
        MPI_Reduce_scatter_block(input_, output_, part, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        return;
      case Collective::all_to_all:
        MPI_Alltoall(input_, part, MPI_DOUBLE, output_, part, MPI_DOUBLE, MPI_COMM_WORLD);
        return;
    }
  }

  const Memory input_memory_, output_memory_;
};

class Window final : private SharedWindow, public HandCollective {
 public:
  Window(const Work& work, int rank)
      : SharedWindow(window_elements(work)), HandCollective(work, rank, "window", windows(work.ranks)) {}

 private:
  std::vector<double*> windows(int ranks) const {
    std::vector<double*> all;
    for (int rank = 0; rank < ranks; ++rank) all.push_back(of(rank));
    return all;
  }
};

}  // namespace

Methods mpi_collective_methods(const Work& work, int rank) {
  Methods methods;
  methods.push_back(std::make_unique<Call>(work, rank));
  methods.push_back(std::make_unique<Window>(work, rank));
  return methods;
}

}  // namespace contest
