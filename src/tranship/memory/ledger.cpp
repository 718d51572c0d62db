#include "tranship/memory/ledger.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/json.hpp>
#include <tranship/memory/buffer/thread_scopes.hpp>
#include <tranship/memory/ledger_trace.hpp>
#include <tranship/memory/state/region_map.hpp>

namespace tranship {
namespace {

constexpr std::size_t causes = std::size_t(Cause::duplicate) + 1;

using DevicePair = std::pair<Device, Device>;

std::string track_of(const DevicePair& pair) {
  return fmt::format("{} -> {}", to_string(pair.first), to_string(pair.second));
}

bool is_implicit(const CopyRecord& copy) {
  return copy.cause != Cause::prefetch && copy.cause != Cause::export_;
}

// --- Ping-pong ------------------------------------------------------------------------------------------------------

/// The history of a cell between two devices.
struct Turns {
  enum class Way : std::uint8_t { none, there, back } last = Way::none;
  Index turns = 0;
  std::int64_t cell_bytes = 0;  ///< bytes copied per cell, in all
  friend bool operator==(const Turns&, const Turns&) = default;
};

struct CopiedCells {
  const Region* region;
  std::int64_t cell_bytes;
  Turns::Way way;
};

/// The dimension in which the boxes have the most distinct lower ends, so that few lie side by side.
int spread_dim(const std::vector<const Box*>& boxes) {
  int best = 0;
  std::size_t most = 0;
  for (int d = 0; d < boxes[0]->dims(); ++d) {
    std::vector<Index> lowers;
    for (const Box* box : boxes) lowers.push_back(box->lower[d]);
    std::sort(lowers.begin(), lowers.end());
    const std::size_t distinct = std::size_t(std::unique(lowers.begin(), lowers.end()) - lowers.begin());
    if (distinct > most) best = d, most = distinct;
  }
  return best;
}

/// Gives boxes that are connected by overlaps one number, in a sweep along one dimension.
class Clusters {
 public:
  explicit Clusters(const std::vector<CopiedCells>& moves) {
    std::vector<const Box*> boxes;
    for (const CopiedCells& move : moves)
      for (const Box& box : move.region->boxes()) boxes.push_back(&box);
    for (std::size_t i = 0; i < boxes.size(); ++i) parents_.push_back(i);
    if (boxes.empty() || boxes[0]->dims() == 0) {
      std::fill(parents_.begin(), parents_.end(), 0);
      return;
    }
    const int d = spread_dim(boxes);
    std::vector<std::size_t> order = parents_, open;
    std::sort(order.begin(), order.end(),
              [&](std::size_t i, std::size_t j) { return boxes[i]->lower[d] < boxes[j]->lower[d]; });
    for (const std::size_t i : order) {
      bool known = false;
      std::erase_if(open, [&](std::size_t j) {
        if (boxes[j]->upper[d] <= boxes[i]->lower[d]) return true;
        if (detail::overlap(*boxes[i], *boxes[j])) parents_[root(i)] = root(j);
        known = known || *boxes[i] == *boxes[j];
        return false;
      });
      // One instance of a box that recurs is enough.
      if (!known) open.push_back(i);
    }
  }

  std::size_t root(std::size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }

 private:
  std::vector<std::size_t> parents_;
};

/// The histories of all cells that the moves touch; moves are in the order in which they were made.
std::vector<RegionMap<Turns>> histories_of(const std::vector<CopiedCells>& moves) {
  Clusters clusters(moves);
  std::map<std::size_t, Box> around;
  std::size_t number = 0;
  for (const CopiedCells& move : moves)
    for (const Box& box : move.region->boxes())
      detail::extend(around.try_emplace(clusters.root(number++), box).first->second, box);
  std::map<std::size_t, RegionMap<Turns>> maps;
  for (const auto& [root, box] : around) maps.try_emplace(root, box, Turns{});
  number = 0;
  for (const CopiedCells& move : moves)
    for (const Box& box : move.region->boxes())
      maps.at(clusters.root(number++)).update(box, [&](const Box&, Turns& cells) {
        cells.turns += cells.last != Turns::Way::none && cells.last != move.way;
        cells.last = move.way;
        cells.cell_bytes += move.cell_bytes;
      });
  std::vector<RegionMap<Turns>> out;
  for (auto& [root, map] : maps) out.push_back(std::move(map));
  return out;
}

using detail::thread_scopes;

}  // namespace

const char* name_of(Cause cause) {
  switch (cause) {
    case Cause::first_touch:
      return "first_touch";
    case Cause::stale:
      return "stale";
    case Cause::merge:
      return "merge";
    case Cause::halo:
      return "halo";
    case Cause::eviction:
      return "eviction";
    case Cause::export_:
      return "export";
    case Cause::prefetch:
      return "prefetch";
    case Cause::duplicate:
      return "duplicate";
  }
  return "?";
}

const char* name_of(Route route) {
  switch (route) {
    case Route::direct:
      return "direct";
    case Route::through_host:
      return "through_host";
    case Route::within:
      return "within";
  }
  return "?";
}

std::string to_string(const CopyRecord& record) {
  std::string out =
      fmt::format("{} {} {} of '{}', {}", track_of({record.source, record.target}), amount(record.bytes, "byte"),
                  to_string(record.region), record.buffer, name_of(record.cause));
  if (record.writer.line > 0)
    out += fmt::format("{} write at {}", record.cause == Cause::stale ? " since" : ", last", to_string(record.writer));
  if (record.requester.line > 0) out += fmt::format(", for {}", to_string(record.requester));
  return out;
}

// --- CopyLedger -----------------------------------------------------------------------------------------------------

struct CopyLedger::State {
  mutable std::mutex mutex;
  std::uint64_t next = 1;
  std::uint64_t first = 1;       ///< the first since clear(), in ring[0] until it is overwritten
  std::vector<CopyRecord> ring;  ///< grows up to records_max
  Sums all;
  Sums fills;
  std::array<Sums, causes> by_cause;
  std::map<DevicePair, Sums> by_pair;

  std::size_t slot(std::uint64_t number) const { return std::size_t((number - first) % records_max); }
};

CopyLedger::CopyLedger() : state_(std::make_unique<State>()) {}
CopyLedger::~CopyLedger() = default;

std::uint64_t CopyLedger::add(const CopyRecord& record) {
  const std::lock_guard lock(state_->mutex);
  const std::uint64_t number = state_->next;
  for (Sums* sums :
       {&state_->by_pair[{record.source, record.target}], &state_->by_cause[std::size_t(record.cause)], &state_->all}) {
    ++sums->copies;
    sums->bytes += record.bytes;
  }
  if (state_->ring.size() < records_max)
    state_->ring.push_back(record);
  else
    state_->ring[state_->slot(number)] = record;
  state_->ring[state_->slot(number)].number = number;
  ++state_->next;
  return number;
}

void CopyLedger::set_end(std::uint64_t number, std::int64_t end_ns) {
  const std::lock_guard lock(state_->mutex);
  if (number < state_->first || number >= state_->next) return;
  CopyRecord& record = state_->ring[state_->slot(number)];
  if (record.number == number) record.end_ns = end_ns;
}

std::vector<CopyRecord> CopyLedger::records() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<CopyRecord> out;
  out.reserve(state_->ring.size());
  for (std::uint64_t number = state_->next - state_->ring.size(); number < state_->next; ++number)
    out.push_back(state_->ring[state_->slot(number)]);
  return out;
}

CopyLedger::Sums CopyLedger::sums() const {
  const std::lock_guard lock(state_->mutex);
  return state_->all;
}

CopyLedger::Sums CopyLedger::sums(Cause cause) const {
  const std::lock_guard lock(state_->mutex);
  return state_->by_cause[std::size_t(cause)];
}

CopyLedger::Sums CopyLedger::sums(Device source, Device target) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->by_pair.find({source, target});
  return found == state_->by_pair.end() ? Sums{} : found->second;
}

CopyLedger::Sums CopyLedger::fills() const {
  const std::lock_guard lock(state_->mutex);
  return state_->fills;
}

void CopyLedger::add_fill(std::int64_t bytes) {
  const std::lock_guard lock(state_->mutex);
  ++state_->fills.copies;
  state_->fills.bytes += bytes;
}

void CopyLedger::clear() {
  const std::lock_guard lock(state_->mutex);
  state_->ring.clear();
  state_->first = state_->next;
  state_->all = {};
  state_->fills = {};
  state_->by_cause = {};
  state_->by_pair.clear();
}

std::vector<PingPong> CopyLedger::ping_pongs(Index turns_min) const {
  const std::vector<CopyRecord> copies = records();
  using Key = std::tuple<std::string, std::uint64_t, int, DevicePair>;  // buffer name and number, dimensions, devices
  std::map<Key, std::vector<CopiedCells>> moves;
  for (const CopyRecord& copy : copies) {
    if (copy.source == copy.target || copy.region.empty()) continue;
    const DevicePair devices = std::minmax(copy.source, copy.target);
    moves[{copy.buffer, copy.buffer_number, copy.region.boxes()[0].dims(), devices}].push_back(
        {&copy.region, copy.bytes / copy.region.count(),
         copy.source == devices.first ? Turns::Way::there : Turns::Way::back});
  }
  std::vector<PingPong> out;
  for (const auto& [key, list] : moves) {
    const auto& [buffer, number, dims, devices] = key;
    for (const RegionMap<Turns>& history : histories_of(list)) {
      std::map<std::pair<Index, std::int64_t>, std::vector<Box>> alike;
      history.for_each([&](const Box& box, const Turns& cells) {
        if (cells.turns >= std::max<Index>(1, turns_min)) alike[{cells.turns, cells.cell_bytes}].push_back(box);
      });
      for (const auto& [what, boxes] : alike) {
        PingPong found{buffer, devices.first, devices.second, Region::boxes(boxes), what.first, 0};
        found.bytes = checked_multiply(what.second, found.region.count());
        out.push_back(std::move(found));
      }
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const PingPong& a, const PingPong& b) { return a.bytes > b.bytes; });
  return out;
}

TraceSlice slice_of(const CopyRecord& copy) {
  Json args = {{"number", copy.number},        {"buffer", copy.buffer},
               {"bytes", copy.bytes},          {"region", to_string(copy.region)},
               {"cause", name_of(copy.cause)}, {"route", name_of(copy.route)}};
  if (copy.writer.line > 0) args["writer"] = to_string(copy.writer);
  if (copy.requester.line > 0) args["requester"] = to_string(copy.requester);
  return {.track = track_of({copy.source, copy.target}),
          .name = copy.buffer,
          .category = name_of(copy.cause),
          .begin_ns = copy.begin_ns,
          .end_ns = copy.end_ns,
          .args = std::move(args)};
}

std::string CopyLedger::trace_json() const {
  TraceProcess process{.name = "copies between memories"};
  std::vector<TraceSlice> slices;
  for (const CopyRecord& copy : records()) slices.push_back(slice_of(copy));
  for (const TraceSlice& slice : slices)
    if (&slice == slices.data() || slice.begin_ns < process.zero_ns) process.zero_ns = slice.begin_ns;
  return trace_text(trace_events(process, std::move(slices)));
}

// --- Scopes ---------------------------------------------------------------------------------------------------------

namespace {

/// Removes a scope from anywhere in the chain, because languages with garbage collection close scopes in any order.
template <class Scope>
void unlink(Scope*& innermost, Scope* scope, Scope* Scope::*outer) {
  for (Scope** at = &innermost; *at != nullptr; at = &((*at)->*outer))
    if (*at == scope) {
      *at = scope->*outer;
      return;
    }
}

}  // namespace

NoImplicitCopies::NoImplicitCopies(CallSite where) : outer_(thread_scopes.ban), where_(where) {
  thread_scopes.ban = this;
}

NoImplicitCopies::~NoImplicitCopies() {
  unlink(thread_scopes.ban, this, &NoImplicitCopies::outer_);
}

ByteBudget::ByteBudget(std::int64_t bytes_max, CallSite where)
    : outer_(thread_scopes.budget), where_(where), bytes_max_(bytes_max) {
  if (bytes_max < 0)
    throw_error(ErrorCode::invalid_use, "a budget of {} bytes is negative (from {})", bytes_max, to_string(where));
  thread_scopes.budget = this;
}

ByteBudget::~ByteBudget() {
  unlink(thread_scopes.budget, this, &ByteBudget::outer_);
}

void check_scopes(std::span<const CopyRecord> copies) {
  if (thread_scopes.ban != nullptr) {
    const auto implicit = std::find_if(copies.begin(), copies.end(), is_implicit);
    if (implicit != copies.end()) {
      const auto others = std::count_if(implicit + 1, copies.end(), is_implicit);
      throw_error(ErrorCode::invalid_use, "implicit copy {}{}: forbidden by the scope opened at {}",
                  to_string(*implicit), others > 0 ? fmt::format(" (and {} more)", others) : "",
                  to_string(thread_scopes.ban->where_));
    }
  }
  if (copies.empty() || thread_scopes.budget == nullptr) return;
  std::int64_t bytes = 0;
  for (const CopyRecord& copy : copies) bytes = checked_add(bytes, copy.bytes);
  for (const ByteBudget* budget = thread_scopes.budget; budget != nullptr; budget = budget->outer_)
    if (bytes > budget->bytes_max_ - budget->spent_bytes_) {
      const auto largest = std::max_element(copies.begin(), copies.end(),
                                            [](const CopyRecord& a, const CopyRecord& b) { return a.bytes < b.bytes; });
      throw_error(ErrorCode::invalid_use,
                  "copies of {}, but {} of {} are left of the budget opened at {}; the largest: {}",
                  amount(bytes, "byte"), std::max<std::int64_t>(0, budget->bytes_max_ - budget->spent_bytes_),
                  amount(budget->bytes_max_, "byte"), to_string(budget->where_), to_string(*largest));
    }
}

void spend(std::int64_t bytes) noexcept {
  for (ByteBudget* budget = thread_scopes.budget; budget != nullptr; budget = budget->outer_)
    budget->spent_bytes_ += bytes;
}

}  // namespace tranship
