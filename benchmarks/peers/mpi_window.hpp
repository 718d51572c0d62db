// Memory that all ranks of an MPI program see (MPI_Win_allocate_shared), with a barrier in it as one writes it by hand.
#pragma once

#include <new>

#include <contest/memory.hpp>
#include <contest/stage.hpp>
#include <mpi.h>

namespace contest {

class SharedWindow {
 public:
  /// Collective; every rank says how many doubles it wants.
  explicit SharedWindow(std::int64_t elements) {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    // A head of one page for the barrier of rank 0; the other ranks have one as well, so that all windows are alike.
    MPI_Win_allocate_shared(MPI_Aint(elements * 8 + head_bytes), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mine_, &window_);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
    ask_for_huge_pages(of(rank), std::size_t(elements) * sizeof(double));
    for (std::int64_t i = 0; i < elements; ++i) of(rank)[i] = 0;
    barrier_ = reinterpret_cast<Barrier*>(base_of(0));
    if (rank == 0) new (barrier_) Barrier;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~SharedWindow() {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;

  double* of(int rank) const { return reinterpret_cast<double*>(base_of(rank) + head_bytes); }
  void wait_for_all() const { pass(*barrier_, ranks_); }

 private:
  static constexpr std::int64_t head_bytes = 4096;

  char* base_of(int rank) const {
    MPI_Aint size = 0;
    int unit = 0;
    char* base = nullptr;
    MPI_Win_shared_query(window_, rank, &size, &unit, &base);
    return base;
  }

  MPI_Win window_ = MPI_WIN_NULL;
  char* mine_ = nullptr;
  Barrier* barrier_ = nullptr;
  int ranks_ = 0;
};

}  // namespace contest
