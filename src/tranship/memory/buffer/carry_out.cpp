// Turns a CopyPlan into work on streams.
#include <algorithm>
#include <utility>

#include <tranship/base/fail.hpp>
#include <tranship/memory/buffer/buffer_state.hpp>
#include <tranship/memory/combination.hpp>

namespace tranship::detail {
namespace {

void wait_for(Stream& stream, const std::vector<Before>& all) {
  for (const Before& one : all) come_after(&stream, one);
}

/// Appends a dimension. A dimension that continues the last one is joined with it, so a contiguous box becomes one row.
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

/// Pool blocks that are freed together, after all work that was enqueued on them.
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

const CopyBlock& BufferCore::elements_of(const Box& box, bool source_is_dense, bool target_is_dense) {
  const Indices dense = source_is_dense || target_is_dense ? row_major_strides(box.extents()) : Indices();
  const Index size = shape.element_bytes();
  block.dims = 0;
  for (int d = 0; d < box.dims(); ++d)
    append_dimension(block, box[d].length(), (source_is_dense ? dense : shape.strides)[d] * size,
                     (target_is_dense ? dense : shape.strides)[d] * size);
  return block;
}

const CopyBlock& BufferCore::block_of(const Box& box, bool source_is_dense, bool target_is_dense) {
  elements_of(box, source_is_dense, target_is_dense);
  append_dimension(block, shape.element_bytes() / shape.width(), shape.width(), shape.width());
  return block;
}

Event BufferCore::copy(const Box& box, const Place& source, const Place& target, const std::vector<Before>& after) {
  const auto give = [&](Stream& stream, const Place& from, const Place& to) {
    const Index offset = shape.offset_bytes(box);
    stream.copy(block_of(box, from.is_dense, to.is_dense), shape.width(),
                static_cast<const std::byte*>(from.data) + (from.is_dense ? 0 : offset),
                static_cast<std::byte*>(to.data) + (to.is_dense ? 0 : offset));
    return stream.event();
  };
  Stream& stream = stream_between(source.memory, target.memory);
  if (route_between(shape.devices, source.memory, target.memory) != Route::through_host) {
    residence.register_foreign(source.memory, target.memory);
    wait_for(stream, after);
    return give(stream, source, target);
  }
  Pool& pinned = shape.devices.pinned_pool(source.memory);
  Scratch scratch(pinned, stream);
  scratch.add(pinned.allocate(std::size_t(box.count() * shape.element_bytes())));
  const Place between{0, scratch.next(), true};
  Stream& first = shape.devices.copy_stream(source.memory);
  wait_for(first, after);
  const Event landed = give(first, source, between);
  scratch.used_until(landed);
  stream.wait(landed);
  return give(stream, between, target);
}

void BufferCore::make_own_copy(const Region& moved, const Request& request) {
  const MemoryId memory = request.memory;
  const std::shared_ptr<Storage> old = residence.copies[memory], fresh = residence.new_storage(memory, guards(memory));
  const std::int64_t begin_ns = now_ns();
  Event over;
  const OwnAccess from_old(old->guard.get()), to_fresh(fresh->guard.get());
  for (const Box& box : moved.boxes()) {
    over = copy(box, {memory, old->data, false}, {memory, fresh->data, false},
                residence.work_before(memory, Intent::read, {&box, 1}));
    old->note(over);
    fresh->note(over);
  }
  residence.cells.update(shape.whole, [&](const Box&, CellState& cell) {
    if (!holds(memory, cell)) forget(memory, cell);
  });
  admission.for_each_open([&](OpenLease& lease) {
    if (lease.memory == memory && !lease.storage) lease.storage = old;
  });
  residence.copies[memory] = fresh;
  if (watch) watch->forget(memory);
  residence.add_uses({memory, over, Intent::write}, moved.boxes());
  if (moved.empty()) return;
  CopyRecord record = record_of_own(shape, moved, request);
  note_copies({&record, 1}, memory, begin_ns);
}

void BufferCore::note_copies(std::span<CopyRecord> records, MemoryId memory, std::int64_t begin_ns) {
  CopyLedger& ledger = shape.devices.ledger();
  for (CopyRecord& record : records) {
    spend(record.bytes);
    Stream& stream = shape.devices.copy_stream(memory == 0 ? shape.devices.memory_of(record.source) : memory);
    const bool is_done = is_over(stream.event());
    record.begin_ns = begin_ns;
    if (is_done) record.end_ns = now_ns();
    const std::uint64_t copy = ledger.add(record);
    if (!is_done) try {
        run_on(stream, [&ledger, copy] { ledger.set_end(copy, now_ns()); });
      } catch (const Error&) {
        // The stream has been lost since: the record gets no end.
      }
  }
}

Event BufferCore::merge(const Step& step, const Request& request) {
  const MemoryId memory = request.memory;
  const Place here = place(memory);
  const std::size_t box_bytes = std::size_t(step.box.count() * shape.element_bytes());
  Stream& stream = shape.devices.copy_stream(memory);
  // One block for each partial value of another memory, or for the value where this memory is partial itself. All are
  // allocated before any work begins, because a merge that finds no room must change nothing.
  Scratch scratch(shape.devices.pool(memory), stream);
  step.before.partial.for_each([&](MemoryId) { scratch.add(residence.allocate(memory, box_bytes)); });
  const auto new_scratch = [&]() -> Place { return {memory, scratch.next(), true}; };
  const bool is_partial = step.before.partial.has(memory);
  const Place sum = is_partial ? new_scratch() : here;
  const auto before = [&](MemoryId other, Intent intent) {
    return residence.work_before(other, intent, {&step.box, 1});
  };
  const auto fetch = [&](MemoryId source, const Place& target, const std::vector<Before>& after) {
    const Event over = copy(step.box, place(source), target, after);
    scratch.used_until(over);
    residence.add_uses({source, over, Intent::read}, {&step.box, 1});
    if (!target.is_dense) residence.add_uses({memory, over, Intent::write}, {&step.box, 1});
    stream.wait(over);
  };
  // All values have landed before any value changes: when a device is lost in between, each still has its old value.
  std::vector<Place> partial;
  step.before.partial.for_each([&](MemoryId other) {
    partial.push_back(other == memory ? here : new_scratch());
    if (other != memory) fetch(other, partial.back(), before(other, Intent::read));
  });
  if (step.source != memory) {
    std::vector<Before> after = before(step.source, Intent::read);
    if (!is_partial)
      for (const Before& one : before(memory, Intent::write)) after.push_back(one);
    fetch(step.source, sum, after);
  }
  wait_for(stream, before(memory, Intent::write));
  // First the value, then the partial values in the order of their memories, so the order in which floats are added
  // does not depend on the reader. Where this memory is partial itself, the sum is built in scratch memory.
  const Index offset = shape.offset_bytes(step.box);
  for (const Place& from : partial)
    stream.combine(elements_of(step.box, from.is_dense, sum.is_dense), step.before.combine, shape.type,
                   static_cast<const std::byte*>(from.data) + (from.is_dense ? 0 : offset),
                   static_cast<std::byte*>(sum.data) + (sum.is_dense ? 0 : offset));
  if (is_partial) copy(step.box, sum, here, {});
  return stream.event();
}

Event BufferCore::fold(const Step& step, const Request& request) {
  const MemoryId memory = request.memory;
  Stream& stream = shape.devices.copy_stream(memory);
  Scratch scratch(shape.devices.pool(memory), stream);
  scratch.add(residence.allocate(memory, std::size_t(step.box.count() * shape.element_bytes())));
  const Place there{memory, scratch.next(), true};
  const std::span<const Box> box(&step.box, 1);
  const Event landed = copy(step.box, place(step.source), there, residence.work_before(step.source, Intent::read, box));
  scratch.used_until(landed);
  residence.add_uses({step.source, landed, Intent::read}, box);
  stream.wait(landed);
  wait_for(stream, residence.work_before(memory, Intent::write, box));
  stream.combine(elements_of(step.box, true, false), step.before.combine, shape.type, there.data,
                 static_cast<std::byte*>(place(memory).data) + shape.offset_bytes(step.box));
  return stream.event();
}

void BufferCore::carry_out(const Step& step, const Request& request) {
  const MemoryId memory = request.memory;
  const std::span<const Box> box(&step.box, 1);
  Event over;
  switch (step.kind) {
    case Step::Kind::zero: {
      Stream& stream = shape.devices.copy_stream(memory);
      wait_for(stream, residence.work_before(memory, Intent::write, box));
      stream.fill(block_of(step.box, false, false), shape.width(), nullptr,
                  static_cast<std::byte*>(place(memory).data) + shape.offset_bytes(step.box));
      over = stream.event();
      shape.devices.ledger().add_fill(step.box.count() * shape.element_bytes());
      break;
    }
    case Step::Kind::identity: {
      Stream& stream = shape.devices.copy_stream(memory);
      wait_for(stream, residence.work_before(memory, Intent::write, box));
      fill_identity(request.combine, {place(memory).data, shape.type, shape.extents, shape.strides}, step.box, stream);
      over = stream.event();
      break;
    }
    case Step::Kind::copy:
    case Step::Kind::take: {
      std::vector<Before> after = residence.work_before(step.source, Intent::read, box);
      for (const Before& one : residence.work_before(memory, Intent::write, box)) after.push_back(one);
      over = copy(step.box, place(step.source), place(memory), after);
      residence.add_uses({step.source, over, Intent::read}, box);
      break;
    }
    case Step::Kind::merge:
      over = merge(step, request);
      break;
    case Step::Kind::fold:
      over = fold(step, request);
      break;
  }
  residence.add_uses({memory, over, Intent::write}, box);
  residence.cells.update(step.box, [&](const Box&, CellState& cell) { apply(step, memory, request.combine, cell); });
}

std::size_t BufferCore::copies_together(std::span<const Step> steps, MemoryId memory) const {
  const auto is_copy = [](const Step& step) { return step.kind == Step::Kind::copy || step.kind == Step::Kind::take; };
  // Bounds the memory of a list; 64 copies share the cost of a launch well enough.
  constexpr std::size_t count_max = 64;
  std::size_t count = 1;
  if (!is_copy(steps[0]) || route_between(shape.devices, steps[0].source, memory) == Route::through_host) return count;
  while (count < std::min(steps.size(), count_max) && is_copy(steps[count]) && steps[count].source == steps[0].source)
    ++count;
  return count;
}

void BufferCore::copy_together(std::span<const Step> steps, const Request& request) {
  const MemoryId source = steps[0].source, memory = request.memory;
  Stream& stream = stream_between(source, memory);
  residence.register_foreign(source, memory);
  std::vector<StreamCopy> copies;
  copies.reserve(steps.size());
  for (const Step& step : steps) {
    const std::span<const Box> box(&step.box, 1);
    wait_for(stream, residence.work_before(source, Intent::read, box));
    wait_for(stream, residence.work_before(memory, Intent::write, box));
    const Index offset = shape.offset_bytes(step.box);
    copies.push_back({.block = block_of(step.box, false, false),
                      .width = shape.width(),
                      .source = static_cast<const std::byte*>(place(source).data) + offset,
                      .target = static_cast<std::byte*>(place(memory).data) + offset});
  }
  stream.copy_list(copies);
  const Event over = stream.event();
  for (const Step& step : steps) {
    const std::span<const Box> box(&step.box, 1);
    residence.add_uses({source, over, Intent::read}, box);
    residence.add_uses({memory, over, Intent::write}, box);
    residence.cells.update(step.box, [&](const Box&, CellState& cell) { apply(step, memory, request.combine, cell); });
  }
}

/// Throws the error that is being handled again. A stream does not know the buffer whose work it refuses.
void BufferCore::name_buffer_in_error() const {
  try {
    throw;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_use) throw;
    throw error.with_message(fmt::format("buffer '{}': {}", shape.options.name, error.message()));
  }
}

void BufferCore::carry_out(const Request& request, std::optional<Cause> asked) {
  const MemoryId memory = request.memory;
  CopyPlan plan(shape, residence, request, asked);
  check_scopes(plan.records.all());
  if (plan.own)
    make_own_copy(*plan.own, request);
  else if (!residence.copies[memory])
    residence.copies[memory] = residence.new_storage(memory, guards(memory));
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
    while (done < steps.size()) {
      const std::size_t count = copies_together(steps.subspan(done), memory);
      if (count > 1)
        copy_together(steps.subspan(done, count), request);
      else
        carry_out(steps[done], request);
      done += count;
    }
  } catch (...) {
    Few<CopyRecord> records;
    add_records(shape, residence, steps.first(done), request, asked, records);
    note_copies(records.all(), memory, begin_ns);
    name_buffer_in_error();
  }
  std::span<CopyRecord> records = plan.records.all();
  if (plan.own && !plan.own->empty()) records = records.first(records.size() - 1);  // it has been recorded
  note_copies(records, memory, begin_ns);
  if (watch) watch->remember(memory);
}

}  // namespace tranship::detail
