#include "tranship/cuda/cuda_stream.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <new>
#include <stdexcept>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/cuda/card_moves.hpp>
#include <tranship/cuda/kernels.hpp>
#include <tranship/cuda/list_image.hpp>
#include <tranship/kernels/host/element_moves.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/memory/combination.hpp>
#include <tranship/memory/device/host_device.hpp>
#include <tranship/memory/device/prepared_moves.hpp>

namespace tranship::cuda {
namespace {

/// Bytes that go through pinned memory at a time, and the limit for all that are on their way.
constexpr std::int64_t stage_bytes_max = std::int64_t(16) << 20;
constexpr std::int64_t staged_bytes_max = std::int64_t(256) << 20;
/// From here on, a contiguous copy is the copy engine's, even where a launch copies others of its list.
constexpr std::int64_t engine_bytes_min = std::int64_t(1) << 20;

/// Sources of a fill are no addresses but places in the pattern, which begins again each 16 bytes.
constexpr long long pattern_at = 1LL << 46;

CUdeviceptr address_of(const void* at) {
  return reinterpret_cast<CUdeviceptr>(at);
}

bool is_contiguous(const CopyBlock& canonical, int width) {
  return canonical.dims == 0 ||
         (canonical.dims == 1 && canonical.source_strides[0] == width && canonical.target_strides[0] == width);
}

/// The byte that the element consists of, or -1.
int only_byte(const unsigned char* element, int width) {
  return std::all_of(element, element + width, [&](unsigned char byte) { return byte == element[0]; }) ? element[0]
                                                                                                       : -1;
}

bool is_aligned(const CopyBlock& block, int width, const void* source, const void* target) {
  auto all = reinterpret_cast<std::uintptr_t>(source) | reinterpret_cast<std::uintptr_t>(target);
  for (int d = 0; d < block.dims; ++d)
    all |= std::uintptr_t(block.source_strides[d]) | std::uintptr_t(block.target_strides[d]);
  return all % std::uintptr_t(width) == 0;
}

/// Calls f(block, source, target) for parts of a block of at most `bytes_max`, as long as it can be cut.
template <class F>
void for_each_part(const CopyBlock& block, int width, const std::byte* source, std::byte* target,
                   std::int64_t bytes_max, const F& f) {
  int longest = -1;
  for (int d = block.dims - 1; d >= 0; --d)
    if (block.extents[d] > 1) longest = d;  // the slowest that can be cut
  if (longest < 0 || element_count(block) * width <= bytes_max) return f(block, source, target);
  CopyBlock lower = block, upper = block;
  const long long half = block.extents[longest] / 2;
  lower.extents[longest] = half;
  upper.extents[longest] -= half;
  for_each_part(lower, width, source, target, bytes_max, f);
  for_each_part(upper, width, source + half * block.source_strides[longest],
                target + half * block.target_strides[longest], bytes_max, f);
}

/// Returns the bases as arguments of a launch. Many of them are written to `room`.
packing::Bases bases_at(std::span<std::byte* const> bases, std::byte* room) {
  packing::Bases out{};
  unsigned char** const to = room ? reinterpret_cast<unsigned char**>(room) : out.few;
  for (std::size_t i = 0; i < bases.size(); ++i) to[i] = reinterpret_cast<unsigned char*>(bases[i]);
  if (room) out.many = to;
  return out;
}

void pause_ns(long ns) {
  const std::timespec time{0, ns};
  ::nanosleep(&time, nullptr);
}

}  // namespace

Unit::Unit(Card& of, int number, const DeviceSetOptions& options)
    : card(of),
      ordinal(number),
      wait_timeout_ns(options.wait_timeout_ns),
      losses(options.losses),
      pinned(*this),
      staging(std::make_unique<Pool>(pinned, PoolOptions{.kept_bytes_max = staged_bytes_max})),
      captured_runs(std::make_shared<CapturedRuns>()) {
  card.add(*this);
}

Unit::~Unit() {
  card.remove(*this);
  captured_runs->close();
}

bool Unit::is_lost() noexcept {
  if (!card.is_lost()) return false;
  on_loss();  // a forked child's cards are lost without a call that says so
  return true;
}

void Unit::on_loss() noexcept {
  if (!is_loss_counted.exchange(true)) losses.fetch_add(1, std::memory_order_release);
}

std::string Unit::loss() const {
  return card.loss();
}

void Unit::fail() const {
  throw_error(ErrorCode::device_lost, "{}", loss());
}

void* Unit::allocate_pinned(std::size_t size_bytes) {
  if (is_lost()) fail();
  const Current current(card);
  void* memory = nullptr;
  const CUresult result = card.calls().cuMemHostAlloc(&memory, size_bytes, CU_MEMHOSTALLOC_PORTABLE);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
  card.check(result, "cuMemHostAlloc");
  pinned_bytes.fetch_add(std::int64_t(size_bytes), std::memory_order_relaxed);
  return memory;
}

void Unit::deallocate_pinned(void* memory, std::size_t size_bytes) noexcept {
  pinned_bytes.fetch_sub(std::int64_t(size_bytes), std::memory_order_relaxed);
  if (is_lost()) return;  // It stays readable; the driver frees nothing any more.
  const Current current(card, std::nothrow);
  card.note(card.calls().cuMemFreeHost(memory), "cuMemFreeHost");
}

struct CudaStream::HostCall {
  CudaStream* stream;
  std::unique_ptr<Kernel> kernel;
};

/// Copies that are given together. What is staged is packed before the card moves, and unpacked after it.
struct CudaStream::Batch {
  std::vector<StreamCopy> pack, move, unpack;
  std::int64_t staged_bytes = 0;
};

CudaStream::CudaStream(Unit& unit) : unit_(unit), timeline_(std::make_shared<Timeline>(unit.card, unit.device())) {}

CudaStream::~CudaStream() {
  end();
  timeline_->end();
}

/// Finishes the work, and gives back what the stream has.
void CudaStream::end() {
  const CUstream stream = handle_.load(std::memory_order_acquire);
  // A call that failed half-way may have given it something.
  const std::uint64_t last = timeline_->give();
  if (stream) try {
      settle(event(), Deadline::after_ns(unit_.wait_timeout_ns));
    } catch (const Error&) {
      // It hangs.
    }
  if (stream && !unit_.is_lost() && !timeline_->has_passed(last)) {
    // The memory that its work may still use is kept for good.
    [[maybe_unused]] const auto* const kept = new (std::nothrow) std::vector<Running>(std::move(prepared_));
    return;
  }
  for (const Staged& one : staged_) unit_.staging->free(one.block);
  {
    // None of these will run: the card is lost.
    const std::lock_guard lock(host_calls_mutex_);
    for (HostCall* call : host_calls_) delete call;
  }
  if (!stream || unit_.is_lost()) return;
  const Current current(unit_.card, std::nothrow);
  calls().cuStreamDestroy(stream);
}

CUstream CudaStream::handle() {
  CUstream stream = handle_.load(std::memory_order_acquire);
  if (stream) return stream;
  if (unit_.is_lost()) unit_.fail();
  const std::lock_guard lock(handle_mutex_);
  stream = handle_.load(std::memory_order_relaxed);
  if (stream) return stream;
  const Current current(unit_.card);
  // The default stream would wait for it, and it for the default stream.
  TRANSHIP_CUDA_CALL(unit_.card, cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  handle_.store(stream, std::memory_order_release);
  return stream;
}

void* CudaStream::native_handle() noexcept {
  if (unit_.is_lost()) return nullptr;
  try {
    CUstream const stream = handle();
    is_shared_.store(true, std::memory_order_release);
    return stream;
  } catch (const Error&) {
    return nullptr;  // The next call that gives it work says why.
  }
}

/// Says whether code that has the native handle is capturing the stream, and into which graph.
CUstreamCaptureStatus CudaStream::capture_status(CUgraph* graph) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (is_shared_.load(std::memory_order_acquire) &&
      calls().cuStreamGetCaptureInfo(handle(), &status, nullptr, graph, nullptr, nullptr, nullptr) != CUDA_SUCCESS)
    return CU_STREAM_CAPTURE_STATUS_NONE;
  return status;
}

/// Before each piece of work: throws where the stream cannot be given any.
void CudaStream::begin() {
  check_alive();
  if (is_captured())
    throw_error(ErrorCode::invalid_use,
                "a stream of {} is being captured: buffers cannot use it until the capture has ended",
                to_string(device()));
}

void CudaStream::check_alive() {
  if (unit_.is_lost()) unit_.fail();
  if (unit_.losses.load(std::memory_order_acquire) > 0) check_wait(timeline_->lost_wait(UINT64_MAX));
}

/// Throws where work is never over because of a device.
void CudaStream::check_wait(std::optional<Device> lost) const {
  if (lost)
    throw_error(ErrorCode::device_lost, "a stream of {} waits for work that is never over: {} was lost",
                to_string(device()), to_string(*lost));
}

/// After each piece of work.
void CudaStream::give() {
  unit_.launches.fetch_add(1, std::memory_order_relaxed);
  timeline_->give();
}

Event CudaStream::event() {
  // Others may have given it something.
  if (is_shared_.load(std::memory_order_acquire)) timeline_->give();
  const std::uint64_t number = timeline_->given();
  if (timeline_->over() < number) try {
      record(number);
    } catch (const Error&) {
      // The point is lost with its card, which says so when it is waited for.
    }
  return {this, number};
}

/// Makes sure that a point can be asked for. Returns false where it could be already, or never can.
bool CudaStream::record(std::uint64_t number) {
  if (unit_.card.is_lost() || is_captured()) return false;  // an event would become part of the graph
  return timeline_->record(handle(), number);
}

bool CudaStream::is_over(std::uint64_t number) {
  if (number <= timeline_->over()) return true;
  if (number > timeline_->given() || unit_.is_lost()) return false;
  try {
    // No caller may have asked for this very point before.
    if (!timeline_->is_over(number) && !is_in_host_function && record(number)) timeline_->is_over(number);
  } catch (const Error&) {
    // It is lost.
  }
  unit_.is_lost();
  return number <= timeline_->over();
}

std::optional<Device> CudaStream::lost_with(std::uint64_t number) {
  if (number <= timeline_->over()) return {};
  if (unit_.is_lost()) return device();
  return unit_.losses.load(std::memory_order_acquire) > 0 ? timeline_->lost_wait(number) : std::nullopt;
}

bool CudaStream::is_at_rest(std::uint64_t number) {
  if (is_over(number) || unit_.is_lost()) return true;
  // Work that was to come after work of a lost card may run all the same.
  return lost_with(number) && timeline_->has_passed(number);
}

void CudaStream::finish(std::uint64_t number, Deadline deadline) {
  if (is_over(number)) return;
  if (const std::uint64_t given = timeline_->given(); number > given)
    throw_error(ErrorCode::invalid_use, "there is no point {}: the stream of {} has been given {} of work", number,
                to_string(device()), amount(given, "piece"));
  // Most waits are short: a hop of the card to the host takes microseconds, going to sleep tens of them.
  const std::int64_t spun_at = now_ns() + 50'000;
  long pause = 5'000;
  while (!is_over(number)) {
    if (unit_.is_lost()) unit_.fail();
    // Where the work goes on all the same, the caller's memory is not its own yet.
    const std::optional<Device> lost = timeline_->lost_wait(number);
    if (lost && (timeline_->has_passed(number) || deadline.passed())) check_wait(lost);
    if (deadline.passed())
      throw_error(ErrorCode::timeout, "{} of {} of work on a stream of {} were over when the deadline passed",
                  timeline_->over(), amount(number, "piece"), to_string(device()));
    if (now_ns() < spun_at) continue;
    pause_ns(pause);
    pause = std::min(2 * pause, 100'000L);
  }
}

void CudaStream::wait(Event event) {
  const std::lock_guard turn(turn_);
  begin();
  if (event.stream == nullptr || event.stream == this || tranship::is_over(event)) return;
  auto* const other = dynamic_cast<CudaStream*>(event.stream);
  if (!other) {
    // A device of another kind has nothing that a card can wait for.
    tranship::finish(event, Deadline::after_ns(unit_.wait_timeout_ns));
    return;
  }
  check_wait(other->unit_.is_lost() ? other->device() : other->timeline_->lost_wait(event.number));
  other->record(event.number);
  if (!other->timeline_->hold_back(unit_.card, handle(), event.number)) {
    if (other->unit_.is_lost()) other->unit_.fail();
    throw_error(ErrorCode::invalid_use, "a stream of {} is being captured: it has no point to wait for",
                to_string(other->device()));
  }
  timeline_->follow(other->timeline_, event.number);
  timeline_->give();
}

// Host functions.

void CUDA_CB CudaStream::run_host_call(void* data) {
  auto* const call = static_cast<HostCall*>(data);
  {
    const std::lock_guard lock(call->stream->host_calls_mutex_);
    std::erase(call->stream->host_calls_, call);
  }
  is_in_host_function = true;
  run_kernel(std::move(call->kernel));
  is_in_host_function = false;
  delete call;
}

void CudaStream::call_on_host(std::unique_ptr<Kernel> kernel) {
  auto call = std::make_unique<HostCall>(HostCall{this, std::move(kernel)});
  {
    const std::lock_guard lock(host_calls_mutex_);
    host_calls_.push_back(call.get());
  }
  try {
    TRANSHIP_CUDA_CALL(unit_.card, cuLaunchHostFunc, handle(), &run_host_call, call.get());
  } catch (...) {
    const std::lock_guard lock(host_calls_mutex_);
    std::erase(host_calls_, call.get());
    throw;
  }
  [[maybe_unused]] HostCall* const given = call.release();
}

void CudaStream::run(std::unique_ptr<Kernel> kernel) {
  check_kernel(kernel);
  const std::lock_guard turn(turn_);
  begin();
  const Current current(unit_.card);
  call_on_host(std::move(kernel));
  give();
}

// Copies.

CudaStream::Side CudaStream::side_of(const CopyBlock& block, const long long* strides, int width, const void* first,
                                     Range* known) {
  const auto* lowest = static_cast<const std::byte*>(first);
  const std::byte* last = lowest + width - 1;
  for (int d = 0; d < block.dims; ++d) {
    const long long reach = (block.extents[d] - 1) * strides[d];
    (reach < 0 ? lowest : last) += reach;
  }
  if (known && address_of(lowest) - known->first < known->size_bytes &&
      address_of(last) - known->first < known->size_bytes)
    return Side::card;
  unsigned type = 0;
  int ordinal = -1;
  Range range;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                 CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* answers[] = {&type, &ordinal, &range.first, &range.size_bytes};
  TRANSHIP_CUDA_CALL(unit_.card, cuPointerGetAttributes, known ? 4 : 2, asked, answers, address_of(lowest));
  if (type == CU_MEMORYTYPE_DEVICE) {
    if (ordinal == unit_.card.number()) {
      if (known) *known = range;
      return Side::card;
    }
    CUmemoryPool pool = nullptr;
    CUpointer_attribute of_pool = CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
    void* answer = &pool;
    if (calls().cuPointerGetAttributes(1, &of_pool, &answer, address_of(lowest)) != CUDA_SUCCESS) pool = nullptr;
    if (!unit_.card.reach(*cards().all.at(std::size_t(ordinal)), pool))
      throw_error(ErrorCode::invalid_use, "a stream of {} does not reach the memory of card {}", to_string(device()),
                  ordinal);
    return Side::card;
  }
  if (type != CU_MEMORYTYPE_HOST) return Side::pageable;
  // Foreign memory may be registered in part.
  type = 0;
  TRANSHIP_CUDA_CALL(unit_.card, cuPointerGetAttributes, 2, asked, answers, address_of(last));
  return type == CU_MEMORYTYPE_HOST ? Side::pinned : Side::pageable;
}

/// Pinned memory for the piece of work that is given next.
std::byte* CudaStream::stage(std::size_t size_bytes) {
  std::int64_t staged = std::int64_t(size_bytes);
  for (const Staged& one : staged_) staged += std::int64_t(one.block.size_bytes);
  while (!staged_.empty()) {
    const Staged& first = staged_.front();
    if (first.number > timeline_->given()) break;  // of the same piece
    if (!is_over(first.number)) {
      if (staged <= staged_bytes_max) break;
      finish(first.number, Deadline::after_ns(unit_.wait_timeout_ns));
    }
    staged -= std::int64_t(first.block.size_bytes);
    unit_.staging->free(first.block);
    staged_.pop_front();
  }
  const PoolBlock block = unit_.staging->allocate(size_bytes);
  staged_.push_back({timeline_->given() + 1, block});
  return static_cast<std::byte*>(block.memory);
}

void CudaStream::copy(const CopyBlock& block, int width, const void* source, void* target) {
  const StreamCopy one{block, width, source, target};
  copy_list({&one, 1});
}

void CudaStream::copy_list(std::span<const StreamCopy> copies) {
  for (const StreamCopy& one : copies) {
    check_width(one.width);
    check_memory(one.block, one.source, one.target);
  }
  const std::lock_guard turn(turn_);
  begin();
  const Current current(unit_.card);
  Batch batch;
  Range sources, targets;  // the memory of the card that the copy before was in
  for (const StreamCopy& given : copies) {
    StreamCopy one = given;
    canonicalise(one.block, one.width);
    if (element_count(one.block) == 0) continue;
    const Side source = side_of(one.block, one.block.source_strides, one.width, one.source, &sources);
    const Side target = side_of(one.block, one.block.target_strides, one.width, one.target, &targets);
    if (source != Side::pageable && target != Side::pageable)
      batch.move.push_back(one);
    else
      add_pageable(batch, one, source, target);
  }
  flush(batch);
}

void CudaStream::add_pageable(Batch& batch, const StreamCopy& copy, Side source, Side target) {
  if (source != Side::card && target != Side::card) {
    batch.pack.push_back(copy);
    return;
  }
  const auto add = [&](const CopyBlock& block, const std::byte* from, std::byte* to) {
    const std::int64_t bytes = element_count(block) * copy.width;
    if (batch.staged_bytes > 0 && batch.staged_bytes + bytes > 2 * stage_bytes_max) flush(batch);
    std::byte* const between = stage(std::size_t(bytes));
    batch.staged_bytes += bytes;
    auto& first = source == Side::pageable ? batch.pack : batch.move;
    auto& then = source == Side::pageable ? batch.move : batch.unpack;
    first.push_back({with_dense_target(block, copy.width), copy.width, from, between});
    then.push_back({with_dense_source(block, copy.width), copy.width, between, to});
    for (StreamCopy* one : {&first.back(), &then.back()}) canonicalise(one->block, one->width);
  };
  for_each_part(copy.block, copy.width, static_cast<const std::byte*>(copy.source),
                static_cast<std::byte*>(copy.target), stage_bytes_max, add);
}

void CudaStream::flush(Batch& batch) {
  if (batch.pack.empty() && batch.move.empty() && batch.unpack.empty()) return;
  const auto on_host = [&](std::vector<StreamCopy>& copies) {
    if (copies.empty()) return;
    call_on_host(kernel_of([all = std::move(copies)] {
      for (const StreamCopy& one : all) copy_on_host(one.block, one.width, one.source, one.target);
    }));
  };
  on_host(batch.pack);
  move(batch.move);
  on_host(batch.unpack);
  batch = {};
  give();
}

/// Blocks are canonical, have elements, and lie where the card reaches them.
void CudaStream::move(std::span<const StreamCopy> copies) {
  packing::PieceList list({16});
  for (const StreamCopy& one : copies) {
    const std::int64_t bytes = element_count(one.block) * one.width;
    if (is_contiguous(one.block, one.width) && (copies.size() == 1 || bytes >= engine_bytes_min)) {
      TRANSHIP_CUDA_CALL(unit_.card, cuMemcpyAsync, address_of(one.target), address_of(one.source), std::size_t(bytes),
                         handle());
      continue;
    }
    try {
      list.add({.source_base = 0,
                .source_offset = static_cast<long long>(address_of(one.source)),
                .target_base = 0,
                .target_offset = static_cast<long long>(address_of(one.target)),
                .block = one.block,
                .width = one.width});
    } catch (const std::invalid_argument& wrong) {
      throw_error(ErrorCode::invalid_use, "a copy on {}: {}", to_string(device()), wrong.what());
    }
  }
  if (list.pieces().empty()) return;
  const Card::Parts& parts = unit_.card.parts();
  list.lay_out(parts.multiprocessors);
  MoveArgs args{};
  launch(moving_kernel(parts.kernels, list, Arithmetic::none), list, args, &args);
}

/// Launches a kernel over a list that is laid out. `args` is a part of `all_args`, which are the kernel's.
void CudaStream::launch(CUkernel kernel, const packing::PieceList& list, ListArgs& args, void* all_args) {
  CUdeviceptr uploaded = 0;
  if (ListImage::is_needed(list)) {
    const ListImage image(list);
    std::byte* const between = stage(image.size_bytes());
    image.write(between);
    // A card that is full reads the list where it is, over its link, which takes longer. Nothing has to leave the card
    // for that, and a copy that makes room needs none itself.
    const std::byte* at = between;
    const CUresult allocated =
        calls().cuMemAllocFromPoolAsync(&uploaded, image.size_bytes(), unit_.card.parts().pool, handle());
    if (allocated == CUDA_ERROR_OUT_OF_MEMORY) {
      uploaded = 0;
    } else {
      unit_.card.check(allocated, "cuMemAllocFromPoolAsync");
      TRANSHIP_CUDA_CALL(unit_.card, cuMemcpyAsync, uploaded, address_of(between), image.size_bytes(), handle());
      at = static_cast<const std::byte*>(pointer_to(uploaded));
    }
    args.list = image.view(at);
  } else {
    write_few(list, args);
  }
  try {
    launch_over(kernel, args.list.groups, all_args);
  } catch (...) {
    if (uploaded) unit_.card.note(calls().cuMemFreeAsync(uploaded, handle()), "cuMemFreeAsync");
    throw;
  }
  if (uploaded) TRANSHIP_CUDA_CALL(unit_.card, cuMemFreeAsync, uploaded, handle());
}

void CudaStream::launch_over(CUkernel kernel, unsigned groups, void* all_args) {
  void* all[] = {all_args};
  TRANSHIP_CUDA_CALL(unit_.card, cuLaunchKernel, reinterpret_cast<CUfunction>(kernel), std::clamp(groups, 1u, 1u << 30),
                     1, 1, packing::pack_lanes, 1, 1, 0, handle(), all, nullptr);
}

/// Computes what the card cannot, in the order of the stream: pinned memory holds the elements of both sides, and
/// `compute(block, source, target)` gets them there with a block of the same extents.
template <class F>
void CudaStream::compute_on_host(const CopyBlock& whole, int size, const void* source, Side source_side, void* target,
                                 Side target_side, bool reads_target, const F& compute) {
  const int width = std::min(size, 16);
  // A wider element is moved part by part.
  const auto move_one = [&](CopyBlock all, const std::byte* first, std::byte* last) {
    if (size > width) {
      all.extents[all.dims] = size / width;
      all.source_strides[all.dims] = all.target_strides[all.dims] = width;
      ++all.dims;
    }
    StreamCopy one{all, width, first, last};
    canonicalise(one.block, width);
    move({&one, 1});
  };
  const auto compute_part = [&](const CopyBlock& block, const std::byte* part_source, std::byte* part_target) {
    const auto bytes = std::size_t(element_count(block)) * std::size_t(size);
    CopyBlock host = block;
    const std::byte* from = part_source;
    std::byte* to = part_target;
    if (source_side == Side::card) {
      std::byte* const fetched = stage(bytes);
      detail::dense_strides(block, size, host.source_strides);
      move_one(with_dense_target(block, size), part_source, fetched);
      from = fetched;
    }
    if (target_side == Side::card) {
      to = stage(bytes);
      detail::dense_strides(block, size, host.target_strides);
      CopyBlock current = block;
      std::copy_n(block.target_strides, block.dims, current.source_strides);
      if (reads_target) move_one(with_dense_target(current, size), part_target, to);
    }
    call_on_host(kernel_of([host, compute, from, to] { compute(host, from, to); }));
    if (target_side == Side::card) move_one(with_dense_source(block, size), to, part_target);
    give();
  };
  for_each_part(whole, size, static_cast<const std::byte*>(source), static_cast<std::byte*>(target), stage_bytes_max,
                compute_part);
}

// Lists that are prepared.

std::shared_ptr<const PreparedMoves> CudaStream::prepare(std::span<const BlockMove> moves,
                                                         std::span<const int> alignments) {
  check_moves(moves, alignments);
  if (unit_.is_lost()) unit_.fail();
  unit_.captured_runs->sweep();
  return std::make_shared<CardMoves>(unit_, moves, alignments);
}

void CudaStream::check_reached(const CardMoves& list, std::span<std::byte* const> bases) {
  Range known;  // the memory of the card that the base before is in
  for (std::size_t i = 0; i < bases.size(); ++i) {
    const CardMoves::Reach& reach = list.reaches()[i];
    if (reach.is_empty()) continue;
    if (!bases[i])
      throw_error(ErrorCode::invalid_use, "base {} of a list of moves is null, and moves use {} of it", i,
                  amount(reach.end - reach.first, "byte"));
    const CopyBlock all = row_of(reach.end - reach.first, 1);
    if (side_of(all, all.source_strides, 1, bases[i] + reach.first, &known) == Side::pageable)
      throw_error(ErrorCode::invalid_use,
                  "base {} of a list of moves is memory of the host that {} does not reach: register it, or copy it to "
                  "the card",
                  i, to_string(device()));
  }
}

/// Holds a list until the run that is given next has completed; until the stream ends if it fails half-way.
void CudaStream::hold(const std::shared_ptr<const PreparedMoves>& moves) {
  if (prepared_.empty() || prepared_.back().moves != moves) {
    std::erase_if(prepared_, [&](const Running& one) { return is_over(one.number); });
    prepared_.push_back({.number = 0, .moves = moves});
  }
  prepared_.back().number = UINT64_MAX;
}

void CudaStream::move_list(const std::shared_ptr<const PreparedMoves>& moves, std::span<std::byte* const> bases) {
  const auto list = std::dynamic_pointer_cast<const CardMoves>(moves);
  if (!list)
    throw_error(ErrorCode::invalid_use, "a list of moves was not prepared by a stream of {}", to_string(device()));
  check_prepared(list->unit().device(), device(), list->alignments().size(), bases.size());
  // Another set of devices may number its cards in another way.
  if (&list->unit() != &unit_)
    throw_error(ErrorCode::invalid_use, "a list of moves was prepared for {} of other Devices", to_string(device()));
  const std::lock_guard turn(turn_);
  check_alive();
  CUgraph graph = nullptr;
  const CUstreamCaptureStatus capture = capture_status(&graph);
  if (capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
    throw_error(ErrorCode::invalid_use, "the capture of a stream of {} has failed: it must be ended before other work",
                to_string(device()));
  const Current current(unit_.card);
  unit_.captured_runs->sweep();
  check_reached(*list, bases);
  if (capture == CU_STREAM_CAPTURE_STATUS_ACTIVE) return capture_list(graph, list, bases);
  const bool has_many = bases.size() > packing::Bases::few_max;
  const packing::Bases at = bases_at(bases, has_many ? stage(bases.size_bytes()) : nullptr);
  hold(moves);
  const bool is_aligned = list->is_for(bases);
  for (const CardMoves::Part& part : list->parts()) {
    MoveArgs args = part.args;
    args.bases = at;
    if (is_aligned) {
      launch_over(part.kernel, args.list.groups, &args);
      continue;
    }
    const Card::Parts& card = unit_.card.parts();
    std::vector<BlockMove> unaligned;
    const packing::PieceList anew = CardMoves::list_of(part, alignments_of(bases), card.multiprocessors, &unaligned);
    if (!anew.pieces().empty()) launch(moving_kernel(card.kernels, anew, part.arithmetic), anew, args, &args);
    for (const BlockMove& one : unaligned) move_by_host(one, bases);
  }
  for (const BlockMove& one : list->by_host()) move_by_host(one, bases);
  give();
  prepared_.back().number = timeline_->given();
}

/// Makes a move that the card cannot make: one that computes with numbers for which it has no kernel, or with numbers
/// that are not aligned.
void CudaStream::move_by_host(const BlockMove& one, std::span<std::byte* const> bases) {
  const bool reads_target = one.map != ElementMap::negate;
  compute_on_host(one.block, one.width, bases[one.source_base] + one.source_offset, Side::card,
                  bases[one.target_base] + one.target_offset, Side::card, reads_target,
                  [one](const CopyBlock& all, const void* first, void* last) {
                    move_on_host(all, one.map, one.arithmetic, one.width, CopyMethod(), first, last);
                  });
}

/// Makes a run part of the graph that the stream is captured into, which holds what the run needs.
void CudaStream::capture_list(CUgraph graph, const std::shared_ptr<const CardMoves>& moves,
                              std::span<std::byte* const> bases) {
  auto run = std::make_unique<CapturedRun>();
  run->home = unit_.captured_runs;
  run->moves = moves->is_for(bases) ? moves : moves->aligned_to(alignments_of(bases));
  if (const std::size_t count = run->moves->by_host().size(); count > 0)
    throw_error(ErrorCode::invalid_use,
                "a list of moves cannot be captured: {} of numbers that {} does not compute with where they lie",
                amount(count, "move"), to_string(device()));
  if (bases.size() > packing::Bases::few_max) {
    auto* const memory = static_cast<std::byte*>(unit_.allocate_pinned(bases.size_bytes()));
    if (!memory)
      throw_error(ErrorCode::no_memory, "{} of a list of moves need {} of pinned memory, and there is none",
                  amount(bases.size(), "base"), amount(bases.size_bytes(), "byte"));
    run->many_bases = {memory,
                       [&unit = unit_, size = bases.size_bytes()](std::byte* at) { unit.deallocate_pinned(at, size); }};
  }
  const std::shared_ptr<const CardMoves> list = run->moves;
  const packing::Bases at = bases_at(bases, run->many_bases.get());
  CapturedRuns::give(unit_.card, graph, std::move(run));
  for (const CardMoves::Part& part : list->parts()) {
    MoveArgs args = part.args;
    args.bases = at;
    launch_over(part.kernel, args.list.groups, &args);
  }
}

void CudaStream::fill(const CopyBlock& block, int width, const void* element, void* target) {
  check_width(width);
  check_target(block, target);
  const std::lock_guard turn(turn_);
  begin();
  FillArgs args{};
  unsigned char* const pattern = args.pattern;
  if (element)
    for (int at = 0; at < 16; at += width) std::memcpy(pattern + at, element, std::size_t(width));
  // Where the steps are whole elements, the source has those of the target: rows can then be as wide vectors as a card
  // stores, for the element comes again and again.
  CopyBlock same = block;
  bool is_whole = true;
  for (int d = 0; d < same.dims; ++d) is_whole &= same.target_strides[d] % width == 0;
  for (int d = 0; d < same.dims; ++d) same.source_strides[d] = is_whole ? same.target_strides[d] : 0;
  canonicalise(same, width);
  const std::int64_t count = element_count(same);
  if (count == 0) return;
  const Current current(unit_.card);
  const Side side = side_of(same, same.target_strides, width, target);
  const bool is_dense = same.dims == 0 || (same.dims == 1 && same.target_strides[0] == width);
  const int byte = only_byte(pattern, width);
  const CUdeviceptr at = address_of(target);
  const auto size = std::size_t(count);
  if (side == Side::pageable) {
    call_on_host(kernel_of([same, width, args, target] { fill_on_host(same, width, args.pattern, target); }));
  } else if (is_dense && byte >= 0) {
    TRANSHIP_CUDA_CALL(unit_.card, cuMemsetD8Async, at, static_cast<unsigned char>(byte), size * std::size_t(width),
                       handle());
  } else if (is_dense && width == 2 && at % 2 == 0) {
    unsigned short value;
    std::memcpy(&value, pattern, sizeof value);
    TRANSHIP_CUDA_CALL(unit_.card, cuMemsetD16Async, at, value, size, handle());
  } else if (is_dense && width == 4 && at % 4 == 0) {
    unsigned value;
    std::memcpy(&value, pattern, sizeof value);
    TRANSHIP_CUDA_CALL(unit_.card, cuMemsetD32Async, at, value, size, handle());
  } else {
    packing::PieceList list({16});
    try {
      list.add(
          {.source_offset = pattern_at, .target_offset = static_cast<long long>(at), .block = same, .width = width});
    } catch (const std::invalid_argument& wrong) {
      throw_error(ErrorCode::invalid_use, "a fill on {}: {}", to_string(device()), wrong.what());
    }
    list.lay_out(unit_.card.parts().multiprocessors, packing::lean_vectors);
    launch(unit_.card.parts().kernels.fill, list, args.list, &args);
  }
  give();
}

void CudaStream::combine(const CopyBlock& block, Combine how, ElementType type, const void* source, void* target) {
  detail::check_combination(how, type);
  check_memory(block, source, target);
  const std::lock_guard turn(turn_);
  begin();
  for (int d = 0; d < block.dims; ++d)
    if (block.extents[d] <= 0) return;
  const Current current(unit_.card);
  const ElementType part = part_of(type);
  const int width = size_bytes(part);
  const Side from = side_of(block, block.source_strides, size_bytes(type), source);
  const Side to = side_of(block, block.target_strides, size_bytes(type), target);
  const Card::Parts& parts = unit_.card.parts();
  CUkernel const kernel = parts.kernels.map[std::size_t(detail::arithmetic_of(part))];
  const bool is_complex_product = is_complex(type) && how == Combine::product;
  if (!kernel || is_complex_product || from == Side::pageable || to == Side::pageable ||
      !is_aligned(block, width, source, target))
    return compute_on_host(block, size_bytes(type), source, from, target, to, true,
                           [how, type](const CopyBlock& all, const void* first, void* last) {
                             detail::combine_block(how, type, all, first, last);
                           });
  CopyBlock numbers = block;
  if (is_complex(type)) {
    if (numbers.dims == block_dims_max)
      throw_error(ErrorCode::invalid_use, "complex numbers in {} cannot be combined",
                  amount(numbers.dims, "dimension"));
    numbers.extents[numbers.dims] = 2;
    numbers.source_strides[numbers.dims] = numbers.target_strides[numbers.dims] = width;
    ++numbers.dims;
  }
  packing::PieceList list({16});
  try {
    list.add({.source_offset = static_cast<long long>(address_of(source)),
              .target_offset = static_cast<long long>(address_of(target)),
              .block = numbers,
              .width = width,
              .map = map_of(how),
              .arithmetic = detail::arithmetic_of(part)});
  } catch (const std::invalid_argument& wrong) {
    throw_error(ErrorCode::invalid_use, "a combination on {}: {}", to_string(device()), wrong.what());
  }
  list.lay_out(parts.multiprocessors, packing::lean_vectors);
  MapArgs args{};
  launch(kernel, list, args, &args);
  give();
}

}  // namespace tranship::cuda
