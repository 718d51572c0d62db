#include <contest/collective.hpp>
#include <contest/memory.hpp>

#include <tranship/fabric/context.hpp>
#include <tranship/run/program_executor.hpp>

#include "our_methods.hpp"
#include "programs.hpp"

namespace contest {
namespace {

using namespace tranship;

class ByProgram final : public CollectiveMethod {
 public:
  ByProgram(World& world, const Work& work)
      : CollectiveMethod(work, world.rank(), "tranship"),
        executor_(world, program_of(work), sizes_.input, {.type = ElementType::f64}) {
    use(reinterpret_cast<double*>(executor_.input().data()), reinterpret_cast<double*>(executor_.output().data()));
  }

 private:
  void operate() override { executor_.run(); }

  ProgramExecutor executor_;
};

/// The limit: the same memory, used by hand.
class OurHand final : private SymmetricArray<double>, public HandCollective {
 public:
  OurHand(World& world, const Work& work)
      : SymmetricArray<double>(world.allocate<double>(window_elements(work), World::Alignment{.bytes = 4096})),
        HandCollective(work, world.rank(), "limit", windows(world)) {}

 private:
  std::vector<double*> windows(World& world) const {
    std::vector<double*> all;
    for (Rank rank = 0; rank < world.size(); ++rank) all.push_back(world.context().peer_array(*this, rank).data());
    return all;
  }
};

/// Copies as many bytes as a rank has from one of its own buffers to another.
class Memcpy final : public CollectiveMethod {
 public:
  Memcpy(World& world, const Work& work)
      : CollectiveMethod(work, world.rank(), "memcpy"),
        elements_(work.bytes / 8),
        from_(memory(elements_, 4096)),
        to_(memory(elements_, 4096)) {
    use(from_.get(), to_.get());
  }
  std::int64_t count_wrong(double) override {
    return std::memcmp(from_.get(), to_.get(), std::size_t(elements_) * sizeof(double)) == 0 ? 0 : 1;
  }

 private:
  void operate() override { std::memcpy(to_.get(), from_.get(), std::size_t(elements_) * sizeof(double)); }

  const std::int64_t elements_;
  const Memory from_, to_;
};

}  // namespace

Methods collective_methods(World& world, const Work& work) {
  Methods methods;
  methods.push_back(std::make_unique<ByProgram>(world, work));
  methods.push_back(std::make_unique<OurHand>(world, work));
  methods.push_back(std::make_unique<Memcpy>(world, work));
  return methods;
}

}  // namespace contest
