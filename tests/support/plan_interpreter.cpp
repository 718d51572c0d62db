#include "support/plan_interpreter.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/core.h>

namespace tranship::test {

Memory memory_for(const Plans& plans, Index value) {
  Memory out;
  for (const TransferPlan& plan : plans) {
    auto& slots = out.emplace_back();
    for (const Slot& slot : plan.slots) slots.emplace_back(checked_product(slot.local_extents), value);
  }
  return out;
}

Index combined(Combine combine, Index a, Index b) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  switch (combine) {
    case Combine::sum:
      return static_cast<Index>(x + y);
    case Combine::product:
      return static_cast<Index>(x * y);
    case Combine::minimum:
      return std::min(a, b);
    case Combine::maximum:
      return std::max(a, b);
  }
  return 0;
}

Index identity(Combine combine) {
  switch (combine) {
    case Combine::sum:
      return 0;
    case Combine::product:
      return 1;
    case Combine::minimum:
      return INT64_MAX;
    case Combine::maximum:
      return INT64_MIN;
  }
  return 0;
}

PlanInterpreter::PlanInterpreter(const Plans& plans) : plans_(plans), ranks_(Index(plans.size())) {
  received_.resize(ranks_ * ranks_);
  sent_.resize(ranks_ * ranks_);
  before_.resize(ranks_);
  after_.resize(ranks_);
  for (Rank r = 0; r < ranks_ && fault_.empty(); ++r) read(r);
  if (fault_.empty()) compare_ends();
  if (fault_.empty()) count_writes();
}

void PlanInterpreter::apply(Memory& memory) const {
  for (Rank r = 0; r < ranks_; ++r)
    for (const Fill& fill : before_[r]) apply(fill, memory[r]);
  const Memory sources = memory;
  for (Rank s = 0; s < ranks_; ++s)
    for (Rank t = 0; t < ranks_; ++t)
      for (const Move& m : moves(s, t)) {
        const Index value = sources[s][m.source_slot][m.source];
        Index& target = memory[t][m.target_slot][m.target];
        switch (m.map) {
          case ElementMap::copy:
            target = value;
            break;
          case ElementMap::negate:
            target = -value;
            break;
          case ElementMap::accumulate:
            target += value;
            break;
          case ElementMap::accumulate_negated:
            target -= value;
            break;
          case ElementMap::multiply:
            target = combined(Combine::product, target, value);
            break;
          case ElementMap::minimum:
            target = combined(Combine::minimum, target, value);
            break;
          case ElementMap::maximum:
            target = combined(Combine::maximum, target, value);
            break;
        }
      }
  for (Rank r = 0; r < ranks_; ++r)
    for (const Fill& fill : after_[r]) apply(fill, memory[r]);
}

void PlanInterpreter::apply(const Fill& fill, std::vector<Cells>& slots) {
  Cells& cells = slots[fill.slot];
  switch (fill.kind) {
    case LocalFillKind::zero:
      cells[fill.target] = identity(fill.combine);
      break;
    case LocalFillKind::replicate:
      cells[fill.target] = cells[fill.source];
      break;
    case LocalFillKind::accumulate:
      cells[fill.target] = combined(fill.combine, cells[fill.target], cells[fill.source]);
      break;
  }
}

std::vector<PlanInterpreter::Pair> PlanInterpreter::cells_of(const AxisEntry& entry) {
  std::vector<Pair> out = cells_of(entry.runs);
  for (const RunLattice& lattice : entry.lattices)
    for (LatticeWalk walk(lattice); !walk.is_over(); walk.next())
      for (const Pair& pair : cells_of({walk.run()})) out.push_back(pair);
  return out;
}

std::vector<PlanInterpreter::Pair> PlanInterpreter::cells_of(const std::vector<Run>& runs) {
  std::vector<Pair> out;
  for (const Run& run : runs)
    for (Index k = 0; k < run.count; ++k)
      for (Index i = 0; i < run.length; ++i)
        out.push_back({run.source + k * run.source_pitch + i * run.source_step,
                       run.target + k * run.target_pitch + i * run.target_step});
  return out;
}

bool PlanInterpreter::fail(std::string fault) {
  if (fault_.empty()) fault_ = std::move(fault);
  return false;
}

const Indices* PlanInterpreter::extents_of(Rank rank, int slot) {
  if (rank < 0 || rank >= ranks_) return fail(fmt::format("rank {} of {}", rank, ranks_)), nullptr;
  if (slot < 0 || slot >= int(plans_[rank].slots.size()))
    return fail(fmt::format("slot {} of {}", slot, plans_[rank].slots.size())), nullptr;
  return &plans_[rank].slots[slot].local_extents;
}

template <class F>
bool PlanInterpreter::for_each_cell(const std::vector<std::vector<Pair>>& tables, const Indices& source,
                                    const std::vector<int>& source_dims, const Indices& target,
                                    const std::vector<int>& target_dims, const std::string& where, F&& f) {
  const int count = int(tables.size());
  if (count != source.size() || count != target.size() || int(source_dims.size()) != count ||
      int(target_dims.size()) != count)
    return fail(fmt::format("{}: {} tables for {} and {} dimensions", where, count, source.size(), target.size()));
  const Indices source_strides = row_major_strides(source), target_strides = row_major_strides(target);
  unsigned seen_source = 0, seen_target = 0;
  Indices lengths;
  for (int k = 0; k < count; ++k) {
    const int s = source_dims[k], t = target_dims[k];
    if (s < 0 || s >= count || t < 0 || t >= count || (seen_source >> s & 1) || (seen_target >> t & 1))
      return fail(fmt::format("{}: table {} runs along dimensions {} and {}", where, k, s, t));
    seen_source |= 1u << s;
    seen_target |= 1u << t;
    for (const Pair& p : tables[k])
      if (p.source < 0 || p.source >= source[s] || p.target < 0 || p.target >= target[t])
        return fail(fmt::format("{}: dimension {} index {} of {} becomes dimension {} index {} of {}", where, s,
                                p.source, source[s], t, p.target, target[t]));
    lengths.push_back(Index(tables[k].size()));
  }
  for_each_coordinate(lengths, [&](const Indices& at) {
    Pair cell{0, 0};
    for (int k = 0; k < count; ++k) {
      cell.source += tables[k][at[k]].source * source_strides[source_dims[k]];
      cell.target += tables[k][at[k]].target * target_strides[target_dims[k]];
    }
    f(cell);
  });
  return true;
}

void PlanInterpreter::read(Rank rank) {
  const TransferPlan& plan = plans_[rank];
  if (plan.rank != rank) fail(fmt::format("the plan of rank {} says rank {}", rank, plan.rank));
  auto read_transfer = [&](const Transfer& transfer, Rank source_rank, Rank target_rank, std::vector<Move>& out) {
    const TransferGroup& group = *transfer.group;
    const Indices* source = extents_of(source_rank, group.source_slot);
    const Indices* target = extents_of(target_rank, group.target_slot);
    if (!source || !target) return;
    std::vector<std::vector<Pair>> tables;
    Index cells = 1;
    for (int k = 0; k < int(group.axes.size()); ++k) {
      tables.push_back(cells_of(transfer.entry(k)));
      cells *= Index(tables.back().size());
    }
    if (cells != transfer.cells()) fail(fmt::format("a transfer of {} cells says {}", cells, transfer.cells()));
    for_each_cell(tables, *source, group.source_dims, *target, group.target_dims,
                  fmt::format("rank {} to {}", source_rank, target_rank), [&](const Pair& p) {
                    out.push_back({group.source_slot, p.source, group.target_slot, p.target, group.map});
                  });
  };
  plan.for_each_receive([&](const Transfer& t) {
    if (t.peer >= ranks_) return void(fail(fmt::format("rank {} receives from {} of {}", rank, t.peer, ranks_)));
    read_transfer(t, t.peer, rank, received_[t.peer * ranks_ + rank]);
  });
  plan.for_each_send([&](const Transfer& t) {
    if (t.peer >= ranks_) return void(fail(fmt::format("rank {} sends to {} of {}", rank, t.peer, ranks_)));
    read_transfer(t, rank, t.peer, sent_[rank * ranks_ + t.peer]);
  });
  for (const IndexedTransfer& list : plan.indexed_receives) read(list, list.peer, rank, received_);
  for (const IndexedTransfer& list : plan.indexed_sends) read(list, rank, list.peer, sent_);
  for (const LocalFill& fill : plan.fills_before) read(fill, rank, before_[rank]);
  for (const LocalFill& fill : plan.fills_after) read(fill, rank, after_[rank]);
}

void PlanInterpreter::read(const IndexedTransfer& list, Rank source_rank, Rank target_rank,
                           std::vector<std::vector<Move>>& all) {
  const Indices* source = extents_of(source_rank, list.source_slot);
  const Indices* target = extents_of(target_rank, list.target_slot);
  if (!source || !target) return;
  const Index source_cells = checked_product(*source), target_cells = checked_product(*target);
  if (list.source_cells.size() != list.target_cells.size() || list.inner < 1 || source_cells % list.inner != 0 ||
      target_cells % list.inner != 0)
    return void(fail(fmt::format("a list of {} and {} cells of {} elements", list.source_cells.size(),
                                 list.target_cells.size(), list.inner)));
  for (std::size_t i = 0; i < list.source_cells.size(); ++i) {
    const Index from = list.source_cells[i], to = list.target_cells[i];
    if (from < 0 || from >= source_cells / list.inner || to < 0 || to >= target_cells / list.inner)
      return void(fail(fmt::format("listed cell {} becomes {}, of {} and {}", from, to, source_cells / list.inner,
                                   target_cells / list.inner)));
    for (Index e = 0; e < list.inner; ++e)
      all[source_rank * ranks_ + target_rank].push_back(
          {list.source_slot, from * list.inner + e, list.target_slot, to * list.inner + e, list.map});
  }
}

void PlanInterpreter::read(const LocalFill& fill, Rank rank, std::vector<Fill>& out) {
  const Indices* extents = extents_of(rank, fill.slot);
  if (!extents) return;
  std::vector<std::vector<Pair>> tables;
  std::vector<int> dims;
  for (const auto& runs : fill.axes) {
    dims.push_back(int(dims.size()));
    tables.push_back(cells_of(runs));
    if (fill.kind == LocalFillKind::zero)
      for (Pair& p : tables.back()) p.source = p.target;
  }
  for_each_cell(tables, *extents, dims, *extents, dims, fmt::format("fill of rank {}", rank), [&](const Pair& p) {
    out.push_back({fill.kind, fill.combine, fill.slot, p.source, p.target});
  });
}

void PlanInterpreter::compare_ends() {
  for (Rank s = 0; s < ranks_; ++s)
    for (Rank t = 0; t < ranks_; ++t) {
      const auto &got = received_[s * ranks_ + t], &sent = sent_[s * ranks_ + t];
      if (got == sent) continue;
      std::size_t i = 0;
      while (i < got.size() && i < sent.size() && got[i] == sent[i]) ++i;
      fail(fmt::format("rank {} sends {} cells to rank {}, which expects {}; they first differ at number {}", s,
                       sent.size(), t, got.size(), i));
    }
}

void PlanInterpreter::count_writes() {
  const Memory zeros = memory_for(plans_, 0);
  std::vector<std::vector<std::vector<int>>> reads;
  for (const auto& slots : zeros) {
    auto& rank_reads = reads.emplace_back();
    for (const Cells& cells : slots) rank_reads.emplace_back(cells.size(), 0);
  }
  writes_ = reads;
  auto added = reads;
  for (Rank s = 0; s < ranks_; ++s)
    for (Rank t = 0; t < ranks_; ++t)
      for (const Move& m : moves(s, t)) {
        ++reads[s][m.source_slot][m.source];
        const bool overwrites = m.map == ElementMap::copy || m.map == ElementMap::negate;
        ++(overwrites ? writes_ : added)[t][m.target_slot][m.target];
      }
  for (Rank r = 0; r < ranks_; ++r) {
    for (std::size_t slot = 0; slot < reads[r].size(); ++slot)
      for (std::size_t i = 0; i < reads[r][slot].size(); ++i)
        if (reads[r][slot][i] > 0 && writes_[r][slot][i] + added[r][slot][i] > 0)
          fail(fmt::format("rank {} slot {} cell {} is read and written in one exchange", r, slot, i));
    auto filled = writes_[r];
    for (auto& cells : filled) cells.assign(cells.size(), 0);
    for (const Fill& fill : after_[r]) {
      ++filled[fill.slot][fill.target];
      if (fill.kind != LocalFillKind::accumulate) ++writes_[r][fill.slot][fill.target];
    }
    for (const Fill& fill : after_[r])
      if (fill.kind == LocalFillKind::replicate && filled[fill.slot][fill.source] > 0)
        fail(fmt::format("rank {} slot {} replicates cell {}, which a fill overwrites", r, fill.slot, fill.source));
  }
}

}  // namespace tranship::test
