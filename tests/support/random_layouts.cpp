#include "support/random_layouts.hpp"

#include <algorithm>
#include <cstdlib>

#include "support/thinned.hpp"

namespace tranship::test {

Index environment_number(const char* name, Index otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? Index(std::strtoll(text, nullptr, 10)) : otherwise;
}

bool long_tests() {
  return environment_number("TRANSHIP_TEST_LONG", 0) != 0;
}

Index test_cases() {
  return environment_number("TRANSHIP_TEST_CASES", is_sanitized ? 250 : 400);
}

std::string first_fault(double share, FunctionRef<std::string(std::uint64_t)> fault_of) {
  const Index only = environment_number("TRANSHIP_TEST_SEED", -1);
  const Index cases = std::max<Index>(1, Index(double(test_cases()) * share));
  const Index first = only >= 0 ? only : environment_number("TRANSHIP_TEST_FIRST", 0);
  const Index last = only >= 0 ? only + 1 : first + cases;
  for (Index seed = first; seed < last; ++seed) {
    std::string fault;
    try {
      fault = fault_of(std::uint64_t(seed));
    } catch (const Error& error) {
      fault = fmt::format("it throws {}: {}", name_of(error.code()), error.what());
    }
    if (!fault.empty()) return fmt::format("TRANSHIP_TEST_SEED={}: {}", seed, fault);
  }
  return "";
}

EdgePolicy random_edge(Random& random) {
  return random.pick<EdgePolicy>({EdgePolicy::truncate, EdgePolicy::toroidal, EdgePolicy::zero, EdgePolicy::replicate,
                                  EdgePolicy::replicate_local, EdgePolicy::open});
}

std::vector<Index> random_bounds(Random& random, Index extent, Index parts) {
  std::vector<Index> bounds{0, extent};
  for (Index k = 1; k < parts; ++k) bounds.push_back(random.between(0, extent));
  std::sort(bounds.begin(), bounds.end());
  return bounds;
}

Partition random_partition(Random& random, Index extent, Index parts, const LayoutChoices& choices) {
  Partition out;
  switch (random.below(choices.replicas || parts == 1 ? 8 : 7)) {
    case 0:
    case 1:
      out = block(random.pick<Remainder>({Remainder::low, Remainder::high, Remainder::ceil}));
      break;
    case 2:
      out = block(random.pick<Remainder>({Remainder::low, Remainder::high, Remainder::ceil}))
                .with_minimum(random.between(0, 4))
                .with_modulo(random.between(1, 3));
      break;
    case 3:
    case 4:
    case 5:
      out = cyclic(random.between(1, 4));
      break;
    case 6: {
      const bool points = choices.interfaces && extent > 0 && random.one_in(2);
      out = irregular(random_bounds(random, extent - points, parts));
      if (points) out = out.with_interfaces();
      break;
    }
    case 7:
      out = whole();
      break;
  }
  if (choices.interfaces && out.kind == PartitionKind::block && extent > 1 && random.one_in(5))
    out = out.with_interfaces();
  if (choices.overlap_max > 0 && !random.one_in(3)) {
    OverlapSide left{random.between(0, choices.overlap_max), random_edge(random)};
    OverlapSide right{random.between(0, choices.overlap_max), random.one_in(2) ? left.edge : random_edge(random)};
    if (out.points == Points::interfaces && extent < 2)
      for (OverlapSide* side : {&left, &right})
        if (side->edge == EdgePolicy::toroidal) side->edge = EdgePolicy::zero;
    out = out.with_overlap(left, right);
  }
  return out;
}

Indices random_extents(Random& random, int dims) {
  Indices out;
  const Index most = dims == 1 ? 60 : dims == 2 ? 14 : dims == 3 ? 7 : 4;
  for (int d = 0; d < dims; ++d) out.push_back(random.one_in(12) ? random.between(0, 1) : random.between(1, most));
  return out;
}

Grid random_grid(Random& random, int dims, const LayoutChoices& choices) {
  Indices extents = Indices::filled(dims, 1);
  Index size = 1;
  for (int tries = 0; tries < 6; ++tries) {
    const int d = int(random.below(dims));
    const Index by = random.between(2, 4);
    if (size * by > choices.ranks_max) continue;
    extents[d] *= by;
    size *= by;
  }
  GridOptions options;
  if (choices.replicas && size * 2 <= choices.ranks_max && random.one_in(5)) options.replicas = 2;
  size *= options.replicas;
  if (random.one_in(2)) {
    for (int d = 0; d <= dims; ++d) options.order.push_back(d);
    random.shuffle(options.order);
  }
  switch (random.below(3)) {
    case 0:
      break;
    case 1:
      options.first = Rank(random.between(0, choices.world - size));
      break;
    case 2: {
      std::vector<Rank> ranks;
      for (Rank r = 0; r < choices.world; ++r) ranks.push_back(r);
      random.shuffle(ranks);
      ranks.resize(size);
      options.ranks = ranks;
      break;
    }
  }
  return Grid(extents, options);
}

MemoryLayout random_memory(Random& random, int dims) {
  MemoryLayout out;
  if (random.one_in(2)) return out;
  std::vector<Index> order;
  for (int d = 0; d < dims; ++d) order.push_back(d);
  random.shuffle(order);
  out.order = Indices(order);
  out.align = random.between(1, 4);
  out.offset = random.between(0, 5);
  return out;
}

Distribution random_distribution(Random& random, const Indices& extents, const LayoutChoices& choices) {
  const Grid grid = random_grid(random, extents.size(), choices);
  std::vector<Partition> partitions;
  for (int d = 0; d < extents.size(); ++d)
    partitions.push_back(random_partition(random, extents[d], grid.extents()[d], choices));
  return Distribution(extents, grid, std::move(partitions), random_memory(random, extents.size()));
}

Partition random_whole(Random& random, Index extent) {
  return random.pick<Partition>({whole(), block(), block(Remainder::ceil), cyclic(random.between(1, 4)),
                                 irregular({0, extent}), block(Remainder::high)});
}

Distribution with_rest(Random& random, const Distribution& leading, const Indices& extents) {
  Indices grid = leading.grid().extents();
  std::vector<Partition> partitions;
  for (int d = 0; d < leading.dims(); ++d) partitions.push_back(leading.axis(d).partition());
  if (extents.size() > leading.dims()) {
    const Index extent = extents[leading.dims()], parts = random.between(1, 2);
    grid.push_back(parts);
    partitions.push_back(parts == 1 && random.one_in(2)
                             ? random_whole(random, extent)
                             : random_partition(random, extent, parts, {.replicas = false, .interfaces = false}));
  }
  return Distribution(extents, Grid(grid), partitions);
}

Distribution random_indexed(Random& random, const Indices& extents, int indexed_dims, Index parts,
                            const std::vector<Rank>& ranks) {
  Index ids = 1;
  for (int d = 0; d < indexed_dims; ++d) ids *= extents[d];
  std::vector<IndexedPart> lists(parts);
  std::vector<Index> owner(ids);
  for (Index id = 0; id < ids; ++id) {
    owner[id] = random.below(parts);
    lists[owner[id]].owned.push_back(id);
  }
  for (Index p = 0; p < parts; ++p) {
    random.shuffle(lists[p].owned);
    for (Index id = 0; id < ids; ++id)
      if (owner[id] != p && random.one_in(3)) lists[p].ghosts.push_back(id);
    random.shuffle(lists[p].ghosts);
  }
  return Distribution::indexed(extents, indexed_dims, Grid({parts}, {.ranks = ranks}), std::move(lists));
}

}  // namespace tranship::test
