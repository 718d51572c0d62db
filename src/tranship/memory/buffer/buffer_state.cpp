#include "tranship/memory/buffer/buffer_state.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/memory/combination.hpp>
#include <tranship/memory/device/driver.hpp>

namespace tranship::detail {
namespace {

bool writes(Intent intent) {
  return intent != Intent::read;
}

Checks checks_of_environment() {
  static const Checks checks = [] {
    const char* text = std::getenv("TRANSHIP_CHECKS");
    const std::string_view word = text ? text : "none";
    if (word == "none" || word.empty()) return Checks::none;
    if (word == "poison") return Checks::poison;
    if (word == "checksums") return Checks::checksums;
    if (word == "guard") return Checks::guard;
    throw_error(ErrorCode::bad_text, "TRANSHIP_CHECKS is '{}'; it must be none, poison, checksums or guard", word);
  }();
  return checks;
}

bool holds(MemoryId memory, const CellState& cell) {
  return cell.valid.has(memory) || cell.partial.has(memory);
}

void wait_for(Stream& stream, const std::vector<Event>& events) {
  for (const Event& event : events) stream.wait(event);
}

}  // namespace

Storage::~Storage() {
  guard.reset();
  registrations_.clear();  // before the memory
  if (pool) pool->free(block, uses_);
}

void Storage::note(Event event) {
  if (is_over(event)) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(uses_, is_over);
  const auto same =
      std::find_if(uses_.begin(), uses_.end(), [&](const Event& old) { return old.stream == event.stream; });
  if (same == uses_.end())
    uses_.push_back(event);
  else
    same->number = std::max(same->number, event.number);  // buffers that share it may come in any order
}

std::vector<Event> Storage::uses() const {
  const std::lock_guard lock(mutex_);
  return uses_;
}

void Storage::register_with(MemoryId memory, Driver& driver, void* lowest, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (registered_.has(memory)) return;
  if (auto registration = driver.register_foreign(lowest, bytes)) registrations_.push_back(std::move(registration));
  registered_.add(memory);
}

namespace {

/// The lowest and the highest element of a view, in elements from the first one; an empty one has [0, -1].
Interval reach_of(const Indices& extents, const Indices& strides) {
  Interval out{0, 0};
  for (int d = 0; d < extents.size(); ++d) {
    if (extents[d] == 0) return {0, -1};
    const Index way = checked_multiply(extents[d] - 1, strides[d]);
    (way < 0 ? out.lower : out.upper) += way;
  }
  return out;
}

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last = 0;
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

BufferState::BufferState(ElementType element_type, const Indices& shape, const Indices& steps,
                         const BufferOptions& given)
    : devices(given.devices ? *given.devices : Devices::standard()),
      number(next_number()),
      type(element_type),
      extents(shape),
      strides(steps),
      size_bytes(checked_multiply(checked_product(shape), tranship::size_bytes(element_type))),
      lowest_bytes(reach_of(shape, steps).lower * tranship::size_bytes(element_type)),
      span_bytes((reach_of(shape, steps).upper + 1) * tranship::size_bytes(element_type) - lowest_bytes),
      whole(Region::whole(shape)),
      options(given),
      residents(devices.residents()),
      losses(devices.losses()),
      cells(Box::of_extents(shape), CellState()),
      copies(std::size_t(devices.memory_count())) {
  const Checks checks = given.checks == Checks::by_environment ? checks_of_environment() : given.checks;
  if (checks != Checks::none && size_bytes > 0) watch = std::make_unique<Watch>(*this, checks);
  residents.add(*this);
}

BufferState::~BufferState() {
  residents.remove(*this);
}

std::shared_ptr<BufferState> BufferState::make(ElementType type, const Indices& extents, const Indices& strides,
                                               const BufferOptions& options) {
  return {new BufferState(type, extents, strides, options), [](BufferState* state) { state->lose_handles(); }};
}

void BufferState::lose_handles() noexcept {
  {
    const std::lock_guard lock(mutex);
    has_handles = false;
    if (open_leases > 0) return;
  }
  delete this;
}

// Geometry.

std::int64_t BufferState::bytes_of(const Region& region) const {
  return region.count() * tranship::size_bytes(type);
}

Index BufferState::offset_bytes(const Box& box) const {
  Index offset = 0;
  for (int d = 0; d < box.dims(); ++d) offset += box.lower[d] * strides[d];
  return offset * tranship::size_bytes(type);
}

namespace {

/// Appends a dimension. One that goes on where the last one ends is joined with it: a contiguous box is one row.
void append_dimension(CopyBlock& block, Index extent, Index source_stride, Index target_stride) {
  if (extent == 1) return;
  const int last = block.dims - 1;
  if (last >= 0 && block.source_strides[last] == source_stride * extent &&
      block.target_strides[last] == target_stride * extent)
    extent *= block.extents[last];
  else
    ++block.dims;
  block.extents[block.dims - 1] = extent;
  block.source_strides[block.dims - 1] = source_stride;
  block.target_strides[block.dims - 1] = target_stride;
}

}  // namespace

const CopyBlock& BufferState::elements_of(const Box& box, bool source_is_dense, bool target_is_dense) {
  const Indices dense = source_is_dense || target_is_dense ? row_major_strides(box.extents()) : Indices();
  const Index size = tranship::size_bytes(type);
  block.dims = 0;
  for (int d = 0; d < box.dims(); ++d)
    append_dimension(block, box[d].length(), (source_is_dense ? dense : strides)[d] * size,
                     (target_is_dense ? dense : strides)[d] * size);
  return block;
}

const CopyBlock& BufferState::block_of(const Box& box, bool source_is_dense, bool target_is_dense) {
  elements_of(box, source_is_dense, target_is_dense);
  append_dimension(block, tranship::size_bytes(type) / width(), width(), width());
  return block;
}

// Checks.

void BufferState::check(const Request& request) const {
  if (writes(request.intent) && frozen.line > 0)
    throw_error(ErrorCode::invalid_use, "buffer '{}' was frozen at {}; {} at {} would change it", options.name,
                to_string(frozen), name_of(request.intent), to_string(request.where));
  if (request.intent == Intent::accumulate && !can_combine(request.combine, type))
    throw_error(ErrorCode::invalid_use, "buffer '{}' of {} has no {}", options.name, tranship::name_of(type),
                name_of(request.combine));
  if (request.region) {
    for (const Box& box : request.region->boxes()) {
      if (box.dims() != extents.size())
        throw_error(ErrorCode::invalid_use, "a region of {} of buffer '{}', which has {}",
                    amount(box.dims(), "dimension"), options.name, extents.size());
      if (whole.empty() || !within(box, whole.boxes()[0]))
        throw_error(ErrorCode::invalid_use, "region {} leaves buffer '{}' of extents [{}]",
                    tranship::to_string(*request.region), options.name, tranship::to_string(extents));
    }
  }
}

void BufferState::know(MemoryId memory) {
  if (std::size_t(memory) < copies.size()) return;
  copies.resize(std::size_t(memory) + 1);
  if (watch) watch->know(copies.size());
}

void BufferState::admit(const Request& request) {
  know(request.memory);
  note_losses();
  check(request);
  if (losses.load(std::memory_order_acquire) > 0)
    if (const std::string loss = devices.driver(request.memory).loss(); !loss.empty())
      throw_error(ErrorCode::device_lost, "buffer '{}': {} on {} at {}: {}", options.name, name_of(request.intent),
                  tranship::to_string(request.device), to_string(request.where), loss);
  check_conflicts(request);
}

void BufferState::note_losses() {
  if (losses.load(std::memory_order_acquire) == 0) return;
  MemorySet lost;
  for (MemoryId memory = 0; memory < MemoryId(copies.size()); ++memory)
    if (!devices.driver(memory).loss().empty()) lost.add(memory);
  cells.update(whole, [&](const Box&, CellState& cell) {
    lose(
        lost, [&](MemoryId memory) { return devices.device_of(memory); }, cell);
  });
}

void BufferState::check_conflicts(const Request& request) const {
  if (open_leases == 0) return;
  for (const OpenLease& other : leases) {
    if (!other.is_open) continue;
    if (!writes(other.intent) && !writes(request.intent)) continue;
    const bool apart = other.memory != request.memory && other.combine == request.combine;
    if (other.intent == Intent::accumulate && request.intent == Intent::accumulate && apart) continue;
    const Region& theirs = region_of(other);
    if (!theirs.overlaps(region_of(request))) continue;
    throw_error(ErrorCode::invalid_use,
                "buffer '{}': {} of {} on {} at {} conflicts with the open {} of {} on {} since {}", options.name,
                name_of(request.intent), tranship::to_string(region_of(request)), tranship::to_string(request.device),
                to_string(request.where), name_of(other.intent), tranship::to_string(theirs),
                tranship::to_string(devices.device_of(other.memory)), to_string(other.where));
  }
}

// Planning.

MemoryId BufferState::nearest(MemorySet set, MemoryId memory) const {
  MemoryId best = -1;
  int best_score = -1;
  set.for_each([&](MemoryId source) {
    const int score = route(source, memory) == Route::through_host ? 0 : source == 0 ? 1 : 2;
    if (score > best_score) best = source, best_score = score;
  });
  return best;
}

Route BufferState::route(MemoryId source, MemoryId target) const {
  if (source == target) return Route::within;
  if (source == 0 || target == 0 || devices.driver(target).reaches(devices.device_of(source))) return Route::direct;
  return Route::through_host;
}

BufferState::Plan::Plan(const BufferState& state, const Request& request, std::optional<Cause> asked) {
  if (request.leaving >= 0)
    add_eviction_steps(state.cells, request.leaving, request.memory, state.region_of(request), steps);
  else
    add_steps(
        state.cells, request.intent, request.combine, request.memory, state.region_of(request), state.options.contents,
        [&](MemorySet set, MemoryId memory) { return state.nearest(set, memory); }, steps);
  state.add_records(steps.all(), request, asked, records);
  if (writes(request.intent) || !steps.empty()) own = state.own_copy_of(request);
  if (own && !own->empty()) records.add() = state.record_of_own(*own, request);
}

void BufferState::add_records(std::span<const Step> steps, const Request& request, std::optional<Cause> asked,
                              Few<CopyRecord>& records) const {
  std::vector<std::vector<Box>> further;  // by record, beside its first
  const auto add = [&](const Step& step, MemoryId source, Cause cause) {
    if (source == request.memory || source < 0) return;
    const Device device = devices.device_of(source);
    const CallSite writer = step.before.writer;
    if (asked)
      cause = *asked;
    else
      cause = request.cause ? *request.cause : step.before.cause.value_or(cause);
    const std::span<const CopyRecord> known = records.all();
    for (std::size_t i = 0; i < known.size(); ++i)
      if (known[i].source == device && known[i].cause == cause && known[i].writer.line == writer.line &&
          known[i].writer.file == writer.file) {
        further.resize(known.size());
        further[i].push_back(step.box);
        return;
      }
    CopyRecord& record = records.add();
    record.buffer = options.name;
    record.buffer_number = number;
    record.source = device;
    record.target = devices.device_of(request.memory);
    record.region = step.box;
    record.route = route(source, request.memory);
    record.cause = cause;
    record.requester = request.where;
    record.writer = writer;
  };
  for (const Step& step : steps) {
    const bool is_new = !copies[request.memory] || !step.before.touched.has(request.memory);
    switch (step.kind) {
      case Step::Kind::zero:
      case Step::Kind::identity:
        break;
      case Step::Kind::copy:
      case Step::Kind::take:
      case Step::Kind::fold:
        add(step, step.source, is_new ? Cause::first_touch : Cause::stale);
        break;
      case Step::Kind::merge:
        add(step, step.source, Cause::merge);
        step.before.partial.for_each([&](MemoryId memory) { add(step, memory, Cause::merge); });
        break;
    }
  }
  const std::span<CopyRecord> all = records.all();
  for (std::size_t i = 0; i < further.size(); ++i) {
    if (further[i].empty()) continue;
    further[i].push_back(all[i].region.boxes()[0]);
    all[i].region = Region::boxes(further[i]);
  }
  for (CopyRecord& record : all) record.bytes = bytes_of(record.region);
}

// Carrying out.

namespace {

/// What `f` allocates; what others can do without leaves a memory that is full.
template <class F>
auto with_room(BufferState& state, MemoryId memory, F f) {
  for (;;) {
    try {
      return f();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::no_memory || !state.make_room(memory)) throw;
    }
  }
}

}  // namespace

PoolBlock BufferState::allocate(MemoryId memory, std::size_t bytes) {
  return with_room(*this, memory, [&] { return devices.pool(memory).allocate(bytes); });
}

std::optional<DeviceArray> BufferState::make_array(MemoryId memory) {
  Driver& driver = devices.driver(memory);
  const Index count = size_bytes == 0 ? 0 : span_bytes / tranship::size_bytes(type);
  return with_room(*this, memory, [&] { return driver.make_array(type, count); });
}

bool BufferState::make_room(MemoryId memory) {
  return residents.release_one(memory, this);
}

std::shared_ptr<Storage> BufferState::new_storage(MemoryId memory) {
  auto storage = std::make_shared<Storage>();
  storage->last_use = devices.residents().now();
  if (const std::optional<DeviceArray> array = make_array(memory)) {
    storage->data = static_cast<std::byte*>(array->lowest) - lowest_bytes;
    storage->owner = array->owner;
    return storage;
  }
  if (size_bytes == 0) return storage;
  Pool& pool = devices.pool(memory);
  const bool is_guarded = watch && watch->guards(memory);
  const auto bytes = std::size_t(span_bytes);
  storage->block = allocate(memory, is_guarded ? Guard::room_bytes(bytes) : bytes);
  storage->pool = &pool;
  void* lowest = storage->block.memory;
  if (is_guarded) {
    storage->guard =
        std::make_unique<Guard>(lowest, bytes, tranship::size_bytes(type), options.name, devices.device_of(memory));
    lowest = storage->guard->data();
  }
  storage->data = static_cast<std::byte*>(lowest) - lowest_bytes;
  return storage;
}

std::vector<Event> BufferState::events_before(MemoryId memory, Intent intent, std::span<const Box> boxes) const {
  std::vector<Event> events;  // the last of each stream, after all others of it
  const auto add = [&](const Box&, const CellState& cell) {
    for (const Use& use : cell.uses) {
      if (use.memory != memory || (!writes(intent) && !writes(use.intent))) continue;
      const auto same =
          std::find_if(events.begin(), events.end(), [&](const Event& old) { return old.stream == use.event.stream; });
      if (same == events.end())
        events.push_back(use.event);
      else
        same->number = std::max(same->number, use.event.number);
    }
  };
  if (const CellState* const only = cells.only(boxes); !only || !only->uses.empty())
    for (const Box& box : boxes) cells.for_each(box, add);
  if (writes(intent) && copies[memory] && copies[memory]->was_shared.load(std::memory_order_relaxed))
    for (const Event& event : copies[memory]->uses())
      if (!is_at_rest(event)) events.push_back(event);
  return events;
}

void BufferState::add_uses(const Use& use, std::span<const Box> boxes) {
  if (!use.event.stream) return;
  bool changes = !is_over(use.event);
  if (!changes)
    for (const Box& box : boxes)
      cells.for_each(box, [&](const Box&, const CellState& cell) { changes |= !cell.uses.empty(); });
  if (!changes) return;
  copies[use.memory]->note(use.event);
  for (const Box& box : boxes) cells.update(box, [&](const Box&, CellState& cell) { add_use(use, cell.uses); });
}

namespace {

/// Pieces of a pool that are given back together, after what its stream and others have been given that uses them.
class Scratch {
 public:
  Scratch(Pool& pool, Stream& stream) : pool_(pool), stream_(stream) {}
  ~Scratch() {
    uses_.push_back(stream_.event());
    for (const PoolBlock& block : blocks_) pool_.free(block, uses_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void add(PoolBlock block) { blocks_.push_back(block); }
  void* next() { return blocks_[next_++].memory; }
  void used_until(Event event) { uses_.push_back(event); }

 private:
  Pool& pool_;
  Stream& stream_;
  std::vector<PoolBlock> blocks_;
  std::size_t next_ = 0;
  std::vector<Event> uses_;
};

}  // namespace

Event BufferState::copy(const Box& box, const Place& source, const Place& target, const std::vector<Event>& after) {
  const auto give = [&](Stream& stream, const Place& from, const Place& to) {
    const Index offset = offset_bytes(box);
    stream.copy(block_of(box, from.is_dense, to.is_dense), width(),
                static_cast<const std::byte*>(from.data) + (from.is_dense ? 0 : offset),
                static_cast<std::byte*>(to.data) + (to.is_dense ? 0 : offset));
    return stream.event();
  };
  Stream& stream = stream_between(source.memory, target.memory);
  if (route(source.memory, target.memory) != Route::through_host) {
    register_foreign(source.memory, target.memory);
    wait_for(stream, after);
    return give(stream, source, target);
  }
  Pool& pinned = devices.pinned_pool(source.memory);
  Scratch scratch(pinned, stream);
  scratch.add(pinned.allocate(std::size_t(box.count() * tranship::size_bytes(type))));
  const Place between{0, scratch.next(), true};
  Stream& first = devices.copy_stream(source.memory);
  wait_for(first, after);
  const Event landed = give(first, source, between);
  scratch.used_until(landed);
  stream.wait(landed);
  return give(stream, between, target);
}

void BufferState::register_foreign(MemoryId source, MemoryId target) {
  for (const auto& [memory, other] : {std::pair(source, target), std::pair(target, source)})
    if (memory != other && copies[memory] && copies[memory]->is_foreign && span_bytes > 0)
      copies[memory]->register_with(other, devices.driver(other),
                                    static_cast<std::byte*>(copies[memory]->data) + lowest_bytes,
                                    std::size_t(span_bytes));
}

std::optional<Region> BufferState::own_copy_of(const Request& request) const {
  const MemoryId memory = request.memory;
  if (!copies[memory] || copies[memory].use_count() == 1) return std::nullopt;
  const Region overwritten = request.intent == Intent::write ? region_of(request) : Region();
  return cells_where(whole, [&](const CellState& cell) { return holds(memory, cell); }) - overwritten;
}

CopyRecord BufferState::record_of_own(const Region& moved, const Request& request) const {
  return {.buffer = options.name,
          .buffer_number = number,
          .source = devices.device_of(request.memory),
          .target = devices.device_of(request.memory),
          .region = moved,
          .bytes = bytes_of(moved),
          .route = Route::within,
          .cause = Cause::duplicate,
          .requester = request.where};
}

void BufferState::make_own_copy(const Region& moved, const Request& request) {
  const MemoryId memory = request.memory;
  const std::shared_ptr<Storage> old = copies[memory], fresh = new_storage(memory);
  const std::int64_t begin_ns = now_ns();
  Event over;
  const OwnAccess from_old(old->guard.get()), to_fresh(fresh->guard.get());
  for (const Box& box : moved.boxes()) {
    over = copy(box, {memory, old->data, false}, {memory, fresh->data, false},
                events_before(memory, Intent::read, {&box, 1}));
    old->note(over);
    fresh->note(over);
  }
  cells.update(whole, [&](const Box&, CellState& cell) {
    if (!holds(memory, cell)) forget(memory, cell);
  });
  for (OpenLease& lease : leases)
    if (lease.is_open && lease.memory == memory && !lease.storage) lease.storage = old;
  copies[memory] = fresh;
  if (watch) watch->forget(memory);
  add_uses({memory, over, Intent::write}, moved.boxes());
  if (moved.empty()) return;
  CopyRecord record = record_of_own(moved, request);
  note_copies({&record, 1}, memory, begin_ns);
}

void BufferState::note_copies(std::span<CopyRecord> records, MemoryId memory, std::int64_t begin_ns) {
  CopyLedger& ledger = devices.ledger();
  for (CopyRecord& record : records) {
    spend(record.bytes);
    Stream& stream = devices.copy_stream(memory == 0 ? devices.memory_of(record.source) : memory);
    const bool is_done = is_over(stream.event());
    record.begin_ns = begin_ns;
    if (is_done) record.end_ns = now_ns();
    const std::uint64_t copy = ledger.add(record);
    if (!is_done) try {
        run_on(stream, [&ledger, copy] { ledger.set_end(copy, now_ns()); });
      } catch (const Error&) {
        // It has been lost since: the copy has no end.
      }
  }
}

Event BufferState::merge(const Step& step, const Request& request) {
  const MemoryId memory = request.memory;
  const Place here = place(memory);
  const std::size_t box_bytes = std::size_t(step.box.count() * tranship::size_bytes(type));
  Stream& stream = devices.copy_stream(memory);
  // One piece for each partial value of another memory, or for the value where this memory is partial itself: all
  // before anything begins, for a merge that finds no room must have changed nothing.
  Scratch scratch(devices.pool(memory), stream);
  step.before.partial.for_each([&](MemoryId) { scratch.add(allocate(memory, box_bytes)); });
  const auto new_scratch = [&]() -> Place { return {memory, scratch.next(), true}; };
  const bool is_partial = step.before.partial.has(memory);
  const Place sum = is_partial ? new_scratch() : here;
  const auto before = [&](MemoryId other, Intent intent) { return events_before(other, intent, {&step.box, 1}); };
  const auto fetch = [&](MemoryId source, const Place& target, const std::vector<Event>& after) {
    const Event over = copy(step.box, place(source), target, after);
    scratch.used_until(over);
    add_uses({source, over, Intent::read}, {&step.box, 1});
    if (!target.is_dense) add_uses({memory, over, Intent::write}, {&step.box, 1});
    stream.wait(over);
  };
  // All has landed before a value is changed: when a device is lost meanwhile, it still is what it was.
  std::vector<Place> partial;
  step.before.partial.for_each([&](MemoryId other) {
    partial.push_back(other == memory ? here : new_scratch());
    if (other != memory) fetch(other, partial.back(), before(other, Intent::read));
  });
  if (step.source != memory) {
    std::vector<Event> after = before(step.source, Intent::read);
    if (!is_partial)
      for (const Event& event : before(memory, Intent::write)) after.push_back(event);
    fetch(step.source, sum, after);
  }
  wait_for(stream, before(memory, Intent::write));
  // The value first and then the partial ones, by memory: the order in which floats are added does not depend on who
  // asks. Where this memory is partial itself, the value is made beside.
  const Index offset = offset_bytes(step.box);
  for (const Place& from : partial)
    stream.combine(elements_of(step.box, from.is_dense, sum.is_dense), step.before.combine, type,
                   static_cast<const std::byte*>(from.data) + (from.is_dense ? 0 : offset),
                   static_cast<std::byte*>(sum.data) + (sum.is_dense ? 0 : offset));
  if (is_partial) copy(step.box, sum, here, {});
  return stream.event();
}

Event BufferState::fold(const Step& step, const Request& request) {
  const MemoryId memory = request.memory;
  Stream& stream = devices.copy_stream(memory);
  Scratch scratch(devices.pool(memory), stream);
  scratch.add(allocate(memory, std::size_t(step.box.count() * tranship::size_bytes(type))));
  const Place there{memory, scratch.next(), true};
  const std::span<const Box> box(&step.box, 1);
  const Event landed = copy(step.box, place(step.source), there, events_before(step.source, Intent::read, box));
  scratch.used_until(landed);
  add_uses({step.source, landed, Intent::read}, box);
  stream.wait(landed);
  wait_for(stream, events_before(memory, Intent::write, box));
  stream.combine(elements_of(step.box, true, false), step.before.combine, type, there.data,
                 static_cast<std::byte*>(place(memory).data) + offset_bytes(step.box));
  return stream.event();
}

void BufferState::carry_out(const Step& step, const Request& request) {
  const MemoryId memory = request.memory;
  const std::span<const Box> box(&step.box, 1);
  Event over;
  switch (step.kind) {
    case Step::Kind::zero: {
      Stream& stream = devices.copy_stream(memory);
      wait_for(stream, events_before(memory, Intent::write, box));
      stream.fill(block_of(step.box, false, false), width(), nullptr,
                  static_cast<std::byte*>(place(memory).data) + offset_bytes(step.box));
      over = stream.event();
      devices.ledger().add_fill(step.box.count() * tranship::size_bytes(type));
      break;
    }
    case Step::Kind::identity: {
      Stream& stream = devices.copy_stream(memory);
      wait_for(stream, events_before(memory, Intent::write, box));
      fill_identity(request.combine, {place(memory).data, type, extents, strides}, step.box, stream);
      over = stream.event();
      break;
    }
    case Step::Kind::copy:
    case Step::Kind::take: {
      std::vector<Event> after = events_before(step.source, Intent::read, box);
      for (const Event& event : events_before(memory, Intent::write, box)) after.push_back(event);
      over = copy(step.box, place(step.source), place(memory), after);
      add_uses({step.source, over, Intent::read}, box);
      break;
    }
    case Step::Kind::merge:
      over = merge(step, request);
      break;
    case Step::Kind::fold:
      over = fold(step, request);
      break;
  }
  add_uses({memory, over, Intent::write}, box);
  cells.update(step.box, [&](const Box&, CellState& cell) { apply(step, memory, request.combine, cell); });
}

void BufferState::carry_out(const Request& request, std::optional<Cause> asked) {
  const MemoryId memory = request.memory;
  Plan plan(*this, request, asked);
  check_scopes(plan.records.all());
  if (plan.own)
    make_own_copy(*plan.own, request);
  else if (!copies[memory])
    copies[memory] = new_storage(memory);
  if (plan.steps.empty()) return;
  const std::span<const Step> steps = plan.steps.all();
  const std::int64_t begin_ns = now_ns();
  std::size_t done = 0;
  try {
    std::optional<Watch::OwnWork> own;
    if (watch) {
      own.emplace(watch.get());
      watch->forget(memory);
    }
    for (; done < steps.size(); ++done) carry_out(steps[done], request);
  } catch (...) {
    Few<CopyRecord> records;
    add_records(steps.first(done), request, asked, records);
    note_copies(records.all(), memory, begin_ns);
    throw;
  }
  std::span<CopyRecord> records = plan.records.all();
  if (plan.own && !plan.own->empty()) records = records.first(records.size() - 1);  // it has been noted
  note_copies(records, memory, begin_ns);
  if (watch) watch->remember(memory);
}

// Memory under pressure.

Region BufferState::needed(MemoryId memory) const {
  return cells_where(whole, [&](const CellState& cell) { return is_needed(cell, memory); });
}

std::uint64_t BufferState::last_use(MemoryId memory) noexcept {
  const std::unique_lock lock(mutex, std::try_to_lock);
  return lock && has_copy(memory) && !copies[memory]->is_foreign
             ? copies[memory]->last_use.load(std::memory_order_relaxed)
             : 0;
}

bool BufferState::try_release(MemoryId memory) noexcept {
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock || !has_copy(memory) || copies[memory].use_count() > 1 || open_lease_on(memory)) return false;
  note_losses();
  if (!needed(memory).empty()) return false;
  if (watch) watch->before_loss(memory);
  forget_copy(memory);
  return true;
}

// Accesses.

Lease BufferState::open(const Request& request, const std::shared_ptr<BufferState>& self) {
  Lease lease;
  std::vector<Event> events;
  const auto wait_for_all = [&] {
    for (const Event& event : events)
      if (request.memory == 0)
        finish(event, Deadline::after_ns(device_timeout_ns));
      else
        lease.stream_->wait(event);
  };
  {
    const std::lock_guard lock(mutex);
    admit(request);
    if (watch) watch->before_use(name_of(request.intent), request.where);
    const Region& region = region_of(request);
    const std::shared_ptr<Storage>& copy_here = copies[request.memory];
    const CellState* only = cells.only(region.boxes());
    if (!copy_here || (writes(request.intent) && copy_here.use_count() > 1) ||
        !all_of(only, region, [&](const CellState& cell) {
          return is_ready(cell, request.intent, request.combine, request.memory);
        })) {
      carry_out(request, std::nullopt);
      only = cells.only(region.boxes());
    }
    const bool claims = request.intent == Intent::accumulate &&
                        !all_of(only, region, [&](const CellState& cell) { return is_claimed(cell, request.memory); });
    if (!only || !only->uses.empty() || copy_here->was_shared.load(std::memory_order_relaxed))
      events = events_before(request.memory, request.intent, region.boxes());

    int slot = 0;
    if (open_leases > 0)
      while (slot < int(leases.size()) && leases[slot].is_open) ++slot;
    if (slot == int(leases.size())) leases.emplace_back();
    OpenLease& entry = leases[slot];
    entry.is_open = true;
    entry.is_void = false;
    entry.intent = request.intent;
    entry.combine = request.combine;
    entry.memory = request.memory;
    entry.where = request.where;
    entry.cause = request.cause;
    entry.is_whole = request.region == nullptr;
    if (request.region) entry.region = *request.region;
    ++open_leases;

    copy_here->last_use.store(residents.now(), std::memory_order_relaxed);
    lease.state_ = this;
    lease.data_ = copy_here->data;
    lease.stream_ = request.stream;
    lease.device_ = request.device;
    lease.intent_ = request.intent;
    lease.exceptions_ = std::int8_t(std::uncaught_exceptions());
    lease.slot_ = slot;
    try {
      if (watch) watch->opened(slot);
      if (claims) {
        // What other memories hold is given up last, when nothing can fail any more, and before others see the lease.
        wait_for_all();
        cells.update(region, [&](const Box&, CellState& cell) { claim(request.memory, cell); });
        events.clear();
      }
    } catch (...) {
      entry.is_void = true;
      throw;
    }
  }
  // Outside the lock: others may go on meanwhile, and the lease guards the region. Should a wait fail, it is closed.
  try {
    if (options.residency == Residency::release) Offload::note(self, request.device);
    wait_for_all();
  } catch (...) {
    const std::lock_guard lock(mutex);
    leases[lease.slot_].is_void = true;
    throw;
  }
  return lease;
}

void BufferState::close(const Lease& lease, Ending ending) noexcept {
  {
    const std::lock_guard lock(mutex);
    OpenLease& entry = leases[lease.slot_];
    const Region& region = region_of(entry);
    // What was written on a device that is lost is lost with it, which says more.
    if (ending == Ending::abandoned && losses.load(std::memory_order_acquire) > 0 &&
        !devices.driver(entry.memory).loss().empty())
      ending = Ending::committed;
    if (watch) watch->closing(lease.slot_, *lease.stream_, ending);
    if (!entry.is_void) {  // else it has not been used
      if (writes(entry.intent)) {
        ++version;
        const auto written = [&](const Box&, CellState& cell) {
          if (ending == Ending::abandoned) return expire(Absence::abandoned, version, entry.where, cell);
          commit(entry.intent, entry.memory, version, entry.where, cell);
          cell.cause = entry.cause;
        };
        if (region.boxes().size() == 1)
          cells.renew(region.boxes()[0], written);
        else
          cells.update(region, written);
      }
      if (entry.storage)
        entry.storage->note(lease.stream_->event());
      else
        add_uses({entry.memory, lease.stream_->event(), entry.intent}, region.boxes());
    }
    entry.is_open = false;
    --open_leases;
    note_losses();
    if (watch) watch->closed(lease.slot_, ending);
    entry.storage.reset();
    if (has_handles || open_leases > 0) return;
  }
  delete this;
}

void BufferState::note_pointers(MemoryId memory) {
  const std::lock_guard lock(mutex);
  if (size_bytes == 0) return;
  if (!watch) watch = std::make_unique<Watch>(*this, Checks::none);
  watch->note_pointers(memory);
}

void BufferState::forget_pointers() noexcept {
  const std::lock_guard lock(mutex);
  if (watch) watch->forget_pointers();
}

void BufferState::prefetch(const Request& request) {
  const std::lock_guard lock(mutex);
  admit(request);
  if (watch) watch->before_use("prefetch", request.where);
  carry_out(request, Cause::prefetch);
}

std::vector<CopyRecord> BufferState::predict(const Request& request) {
  const std::lock_guard lock(mutex);
  admit(request);
  const Plan plan(*this, request, std::nullopt);
  return {plan.records.all().begin(), plan.records.all().end()};
}

void BufferState::check_no_writer(const char* done, CallSite where) const {
  if (const OpenLease* writer = open_lease([](const OpenLease& lease) { return writes(lease.intent); }))
    throw_error(ErrorCode::invalid_use, "buffer '{}' cannot be {} at {}: {} since {} is open", options.name, done,
                to_string(where), name_of(writer->intent), to_string(writer->where));
}

void BufferState::invalidate(const Region& region, CallSite where) {
  const std::lock_guard lock(mutex);
  const Request request{.intent = Intent::write, .region = &region, .where = where};
  check(request);
  check_conflicts(request);
  ++version;
  cells.update(region, [&](const Box&, CellState& cell) { expire(Absence::elsewhere, version, where, cell); });
}

void BufferState::freeze(CallSite where) {
  const std::lock_guard lock(mutex);
  check_no_writer("frozen", where);
  if (frozen.line == 0) frozen = where;
}

std::shared_ptr<BufferState> BufferState::duplicate(CallSite where) {
  const std::lock_guard lock(mutex);
  check_no_writer("duplicated", where);
  if (watch) watch->before_use("duplicate", where);
  note_losses();
  auto out = make(type, extents, strides, options);
  out->cells = cells;
  out->copies = copies;
  for (const auto& storage : copies)
    if (storage) storage->was_shared = true;
  out->version = version;
  if (watch) {
    if (!out->watch) out->watch = std::make_unique<Watch>(*out, Checks::none);
    out->watch->take_over(*watch);
  }
  return out;
}

void BufferState::check_unused(MemoryId memory, CallSite where) const {
  if (const OpenLease* other = open_lease_on(memory))
    throw_error(ErrorCode::invalid_use, "buffer '{}': its copy on {} cannot be given back at {}: {} since {} is open",
                options.name, tranship::to_string(devices.device_of(memory)), to_string(where), name_of(other->intent),
                to_string(other->where));
}

void BufferState::forget_copy(MemoryId memory) {
  if (watch) watch->forget(memory);
  cells.update(whole, [&](const Box&, CellState& cell) { forget(memory, cell); });
  copies[memory].reset();
}

void BufferState::drop(Device device, CallSite where) {
  const std::lock_guard lock(mutex);
  note_losses();
  const MemoryId memory = devices.memory_of(device);
  if (!has_copy(memory)) return;
  check_unused(memory, where);
  if (watch) watch->before_use("drop", where);
  if (const Region lost = needed(memory); !lost.empty())
    throw_error(ErrorCode::invalid_use, "buffer '{}': dropping its copy on {} at {} would lose {} of its {} bytes, {}",
                options.name, tranship::to_string(device), to_string(where), bytes_of(lost), size_bytes,
                tranship::to_string(lost));
  forget_copy(memory);
}

void BufferState::evict(Device device, CallSite where) {
  const std::lock_guard lock(mutex);
  note_losses();
  const MemoryId memory = devices.memory_of(device);
  if (!has_copy(memory)) return;
  check_unused(memory, where);
  if (watch) watch->before_use("eviction", where);
  const Region kept = needed(memory);
  if (!kept.empty() && memory == 0)
    throw_error(ErrorCode::invalid_use,
                "buffer '{}': {} of its {} bytes are only on the host, which is the last resort", options.name,
                bytes_of(kept), size_bytes);
  const Request request{.device = Device::host(), .memory = 0, .region = &kept, .where = where, .leaving = memory};
  if (!kept.empty()) {
    check_conflicts(request);
    carry_out(request, Cause::eviction);
  }
  forget_copy(memory);
}

Region BufferState::valid(Device device) {
  const std::lock_guard lock(mutex);
  note_losses();
  const MemoryId memory = devices.memory_of(device);
  if (!has_copy(memory)) return {};
  return cells_where(whole, [&](const CellState& cell) { return cell.valid.has(memory) && cell.partial.empty(); });
}

}  // namespace tranship::detail
