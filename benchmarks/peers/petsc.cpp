// PETSc's DMDA: a box stencil's ghost cells, from its global to its local vector, and from a local vector to itself.
// PETSc stores the fields of a cell side by side (degrees of freedom).
#include <string>

#include <contest/methods.hpp>
#include <petscdmda.h>

#include "mpi_program.hpp"

namespace {

using namespace contest;

enum class Way { global_to_local, local_to_local };

class Grid final : public Method {
 public:
  Grid(const Work& work, int rank, Way way)
      : work_(work), way_(way), field_(field_of(work, rank)), borders_(borders_of(work, rank)) {
    const auto axis = [&](int d) { return PetscInt(work.axes[d].extent); };
    const auto parts = [&](int d) { return PetscInt(work.axes[d].from.parts); };
    // Its first dimension is the fastest.
    DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_PERIODIC, DM_BOUNDARY_PERIODIC, DM_BOUNDARY_PERIODIC, DMDA_STENCIL_BOX,
                 axis(2), axis(1), axis(0), parts(2), parts(1), parts(0), PetscInt(work.fields), PetscInt(work.width),
                 nullptr, nullptr, nullptr, &grid_);
    DMSetUp(grid_);
    DMCreateGlobalVector(grid_, &global_);
    DMCreateLocalVector(grid_, &local_);
    global_memory_ = place(global_);
    local_memory_ = place(local_);
    for (int d = 0; d < 3; ++d) {
      all_.low[d] = 0, all_.extents[d] = field_.stored[d];
      owned_.low[d] = work.width, owned_.extents[d] = field_.interior[d];
    }
  }
  ~Grid() override {
    VecResetArray(local_);
    VecResetArray(global_);
    VecDestroy(&local_);
    VecDestroy(&global_);
    DMDestroy(&grid_);
  }
  std::string name() const override { return way_ == Way::global_to_local ? "global-local" : "local-local"; }

  void write(double salt) override {
    if (way_ == Way::local_to_local) return with(local_, [&](double* data) { set(data, owned_, all_, salt); });
    with(global_, [&](double* data) { set(data, owned_, owned_, salt); });
  }
  void spoil() override {
    with(local_, [&](double* data) {
      for (const Border& border : borders_)
        for_each(border.takes, all_, [&](std::int64_t at, double) { data[at] = -1; });
    });
  }
  double read() override {
    double total = 0;
    with(local_, [&](double* data) {
      for (const Border& border : borders_)
        for_each(border.takes, all_, [&](std::int64_t at, double) { total += data[at]; });
    });
    return total;
  }
  std::int64_t count_wrong(double salt) override {
    std::int64_t wrong = 0;
    with(local_, [&](double* data) {
      for_each(all_, all_, [&](std::int64_t at, double value) { wrong += data[at] != value + salt; });
    });
    return wrong;
  }
  void run() override {
    if (way_ == Way::global_to_local) {
      DMGlobalToLocalBegin(grid_, global_, INSERT_VALUES, local_);
      DMGlobalToLocalEnd(grid_, global_, INSERT_VALUES, local_);
    } else {
      DMLocalToLocalBegin(grid_, local_, INSERT_VALUES, local_);
      DMLocalToLocalEnd(grid_, local_, INSERT_VALUES, local_);
    }
  }

 private:
  /// The vector's cells lie in memory as all contestants have it.
  static Memory place(Vec vector) {
    PetscInt elements = 0;
    VecGetLocalSize(vector, &elements);
    Memory cells = memory(elements);
    VecPlaceArray(vector, cells.get());
    return cells;
  }
  template <class F>
  void with(Vec vector, F&& f) {
    PetscScalar* data = nullptr;
    VecGetArray(vector, &data);
    f(data);
    VecRestoreArray(vector, &data);
  }
  /// Calls f(offset, value) for every number of a box (in local indices) of an array that stores the box `stored`.
  template <class F>
  void for_each(const Box& box, const Box& stored, F&& f) const {
    const auto wrapped = [&](int d, std::int64_t local) {
      const std::int64_t extent = work_.axes[d].extent;
      return (field_.first[d] + local - work_.width + extent) % extent;
    };
    const double cells = double(cell_count(work_));
    for (std::int64_t i = box.low[0]; i < box.low[0] + box.extents[0]; ++i)
      for (std::int64_t j = box.low[1]; j < box.low[1] + box.extents[1]; ++j) {
        const std::int64_t row = (wrapped(0, i) * work_.axes[1].extent + wrapped(1, j)) * work_.axes[2].extent;
        const std::int64_t at = ((i - stored.low[0]) * stored.extents[1] + j - stored.low[1]) * stored.extents[2];
        for (std::int64_t k = box.low[2]; k < box.low[2] + box.extents[2]; ++k) {
          const double number = double(row + wrapped(2, k));
          for (int field = 0; field < work_.fields; ++field)
            f((at + k - stored.low[2]) * work_.fields + field, number + field * cells);
        }
      }
  }
  void set(double* data, const Box& box, const Box& stored, double salt) const {
    for_each(box, stored, [&](std::int64_t at, double value) { data[at] = value + salt; });
  }

  const Work work_;
  const Way way_;
  const Field field_;
  const std::vector<Border> borders_;
  Box all_ = {}, owned_ = {};
  DM grid_ = nullptr;
  Vec global_ = nullptr, local_ = nullptr;
  Memory global_memory_, local_memory_;
};

Methods methods_for(const Work& work, int rank) {
  Methods methods;
  if (work.task == Task::halo)
    for (const Way way : {Way::global_to_local, Way::local_to_local})
      methods.push_back(std::make_unique<Grid>(work, rank, way));
  return methods;
}

}  // namespace

int main(int argc, char** argv) {
  if (PetscInitialize(nullptr, nullptr, nullptr, nullptr) != 0) return 1;
  const int status = act_under_mpi(argc, argv, methods_for);
  PetscFinalize();
  return status;
}
