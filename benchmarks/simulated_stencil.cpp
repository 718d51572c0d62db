#include <span>
#include <utility>

#include <simulated_stencil.hpp>

#include <tranship/fabric/context.hpp>

namespace {

/// One row of ghosts above and below.
struct Field {
  double* first;
  int size;
  double& at(int row, int column) const { return first[row * size + column]; }
};

void step(const Field& from, const Field& to) {
  const int size = from.size;
  for (int row = 1; row <= size; ++row)
    for (int column = 1; column < size - 1; ++column)
      to.at(row, column) = 0.5 * from.at(row, column) + 0.125 * (from.at(row - 1, column) + from.at(row + 1, column) +
                                                                 from.at(row, column - 1) + from.at(row, column + 1));
}

}  // namespace

double simulated::SIMULATED_STENCIL(tranship::World& world, int size, int steps) {
  using namespace tranship;
  const Index cells = Index(size) * (size + 2);
  SymmetricArray<double> fields[] = {world.allocate<double>(cells), world.allocate<double>(cells)};
  auto arrived = world.allocate<std::uint64_t>(2);
  Context& rma = world.context();
  for (Index i = 0; i < cells; ++i) fields[0].local()[i] = fields[1].local()[i] = double(i % 100);
  world.barrier();
  const Rank ranks = world.size(), above = (world.rank() + ranks - 1) % ranks, below = (world.rank() + 1) % ranks;
  for (int i = 0; i < steps; ++i) {
    const Symmetric<double> from = fields[i % 2];
    const auto row = [&](int number) { return from.slice(Index(number) * size, size); };
    const auto mine = [&](int number) { return std::span<const double>(row(number).local(), std::size_t(size)); };
    rma.put_signal(row(size + 1), mine(1), arrived.slice(0, 1), 1, SignalOp::add, above);
    rma.put_signal(row(0), mine(size), arrived.slice(1, 1), 1, SignalOp::add, below);
    for (const Index side : {0, 1}) rma.signal_wait(arrived.slice(side, 1), Comparison::equal, std::uint64_t(i) + 1);
    step({fields[i % 2].local(), size}, {fields[(i + 1) % 2].local(), size});
    world.barrier();
  }
  double sum = 0;
  for (Index i = size; i < cells - size; ++i) sum += fields[steps % 2].local()[i];
  return sum;
}
