// DualView of Kokkos, built for hosts only: its "device" is a logical memory space, which Kokkos keeps apart from the
// host's by its type. Kokkos itself counts the bytes.
#include <cstdio>
#include <exception>

#include <Kokkos_Core.hpp>
#include <Kokkos_DualView.hpp>
#include <contest/coherence.hpp>
#include <contest/memory.hpp>

namespace {

using namespace contest;

struct DeviceName {
  static constexpr const char* get_name() { return "device"; }
};
using Execution = Kokkos::DefaultHostExecutionSpace;
using DeviceMemory =
    Kokkos::Experimental::LogicalMemorySpace<Kokkos::HostSpace, Execution, DeviceName,
                                             Kokkos::Experimental::LogicalSpaceSharesAccess::no_shared_access>;

std::int64_t copied_bytes = 0;

void count_copy(Kokkos::Tools::SpaceHandle, const char*, const void*, Kokkos::Tools::SpaceHandle, const char*,
                const void*, std::uint64_t bytes) {
  copied_bytes += std::int64_t(bytes);
}

class Dual final : public TwoMemories {
 public:
  explicit Dual(std::int64_t cells)
      : device_(memory(cells)),
        host_(memory(cells)),
        view_(View::t_dev(device_.get(), std::size_t(cells)), View::t_host(host_.get(), std::size_t(cells))),
        cells_(cells) {}

  double* begin(Place place, Use use, Cells cells) override {
    // A use that overwrites the whole array needs no copy before it; Kokkos keeps no state for parts.
    if (use == Use::write && cells.count == cells_)
      view_.clear_sync_state();
    else if (place == Place::host)
      view_.sync_host();
    else
      view_.sync_device();
    return place == Place::host ? view_.h_view.data() : view_.d_view.data();
  }
  void end(Place place, Use use) override {
    if (use == Use::read) return;
    if (place == Place::host)
      view_.modify_host();
    else
      view_.modify_device();
  }
  std::int64_t moved_bytes() override { return copied_bytes; }

 private:
  using View = Kokkos::DualView<double*, Kokkos::Device<Execution, DeviceMemory>>;

  const Memory device_, host_;
  View view_;
  std::int64_t cells_;
};

Methods methods_for(const Work& work) {
  Methods methods;
  if (work.task == Task::coherence)
    methods.push_back(coherence_method(work, "", std::make_unique<Dual>(work.axes[0].extent)));
  return methods;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "started by tranship-bench with the path of a stage; got %d arguments\n", argc - 1);
    return 2;
  }
  try {
    const Kokkos::ScopeGuard kokkos;
    Kokkos::Tools::Experimental::set_begin_deep_copy_callback(count_copy);
    const StageMemory stage = StageMemory::open(argv[1]);
    pin(0, 1);
    act(*stage, 0, methods_for);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
