// The contestant tranship: ranks are threads of this process, each pinned to a core. Started by tranship-bench alone.
// Beside it the limit: each thread copies as many bytes as it receives, with libc's memcpy.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include <contest/methods.hpp>

#include <tranship/tranship.hpp>

namespace {

using namespace contest;
namespace ts = tranship;

ts::Partition partition_of(const Deal& deal) {
  return deal.block > 0 ? ts::cyclic(deal.block) : ts::block();
}

ts::Distribution distribution_of(const Work& work, Side side) {
  ts::Indices extents, parts;
  std::vector<ts::Partition> partitions;
  for (int d = 0; d < work.dims; ++d) {
    const Deal& deal = side == Side::from ? work.axes[d].from : work.axes[d].to;
    extents.push_back(work.axes[d].extent);
    parts.push_back(deal.parts);
    partitions.push_back(partition_of(deal));
  }
  ts::MemoryLayout layout;
  if (side == Side::to && work.order == Order::transposed) layout.order = {1, 0};
  return ts::Distribution(extents, ts::Grid(parts), std::move(partitions), layout);
}

class Turn final : public RedistributionMethod {
 public:
  Turn(const Work& work, ts::World& world)
      : RedistributionMethod(work, world.rank()),
        a_(world, distribution_of(work, Side::from)),
        b_(world, distribution_of(work, Side::to)),
        turn_(a_, b_) {
    use(a_.data(), b_.data());
  }
  std::string name() const override { return "tranship"; }
  void run() override { turn_(); }
  double* source() const { return a_.data(); }
  double* target() const { return b_.data(); }

 private:
  ts::Array<double> a_, b_;
  ts::Redistribution turn_;
};

/// Copies the memory of another method's arrays, straight through: the same bytes, the same pages.
class Memcpy final : public RedistributionMethod {
 public:
  Memcpy(const Work& work, const Turn& other, int rank) : RedistributionMethod(work, rank) {
    use(other.source(), other.target());
  }
  std::string name() const override { return "memcpy"; }
  void run() override { std::memcpy(target_, source_, std::size_t(to_.size) * sizeof(double)); }
  std::int64_t count_wrong(double) override { return std::memcmp(target_, source_, std::size_t(to_.size) * 8) != 0; }
};

Methods methods_for(ts::World& world, const Work& work) {
  Methods methods;
  if (work.task == Task::redistribution) {
    auto turn = std::make_unique<Turn>(work, world);
    auto limit = std::make_unique<Memcpy>(work, *turn, world.rank());
    methods.push_back(std::move(turn));
    methods.push_back(std::move(limit));
  }
  return methods;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "started by tranship-bench with the path of a stage; got %d arguments\n", argc - 1);
    return 2;
  }
  try {
    const StageMemory stage = StageMemory::open(argv[1]);
    ts::launch(stage->ranks, [&](ts::World& world) {
      pin(world.rank(), world.size());
      act(*stage, world.rank(), [&](const Work& work) { return methods_for(world, work); });
    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
