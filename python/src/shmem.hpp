// Shmem, the ShmemRank that Python holds: Python and functions that Numba has compiled call it.
#pragma once

#include <memory>

#include <tranship/face/shmem/rank.hpp>

#include "rank_handle.hpp"

namespace tranship::python {

class Shmem final : public Resident, public ShmemRank {
 public:
  /// Makes the calling thread's ShmemRank. Collective over the world. Throws `invalid_use` when another thread than the
  /// rank's own calls it.
  static std::shared_ptr<Shmem> begin(const std::shared_ptr<RankHandle>& rank);

  RankHandle& rank() const { return *rank_; }
  const std::shared_ptr<RankHandle>& rank_handle() const { return rank_; }
  void leave() noexcept override { ShmemRank::leave(); }

  /// Every ShmemRank of this module is a Shmem.
  static Shmem& of_this_thread() { return static_cast<Shmem&>(ShmemRank::of_this_thread()); }
  static Shmem* of_this_thread_if_any() noexcept { return static_cast<Shmem*>(ShmemRank::of_this_thread_if_any()); }

 private:
  Shmem(std::shared_ptr<RankHandle> rank, CallSite where) : ShmemRank(rank->world(), where), rank_(std::move(rank)) {}

  std::shared_ptr<RankHandle> rank_;
};

/// Addresses of the C functions that compiled code calls, and of the variables that it reads, by name.
nanobind::dict compiled_functions();
/// Adds the names of the numbers that these functions take.
void add_compiled_names(nanobind::module_& module);
template <std::size_t count>
nanobind::tuple names_of(const char* const (&names)[count]) {
  nanobind::list out;
  for (const char* name : names) out.append(name);
  return nanobind::tuple(out);
}

}  // namespace tranship::python
