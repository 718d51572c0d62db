#include "tranship/cuda/card.hpp"

#include <pthread.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/deadline.hpp>
#include <tranship/base/device.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/cuda/kernels.hpp>
#include <tranship/memory/pool/pool.hpp>

/// The device code of kernels.cu, as nvcc has made it.
extern "C" const unsigned char tranship_cuda_kernels[];

namespace tranship::cuda {
namespace {

/// After these, no call to the context succeeds any more.
bool is_final(CUresult result) {
  switch (result) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

/// Lets kernels of a card load from and store to the memory of a pool.
CUmemAccessDesc access_of(CUdevice card) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = card;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

/// The process that has started the driver.
pid_t driver_process = 0;

/// The error of a child process.
std::string why_not_in_child() {
  return fmt::format(
      "process {} has used cards before it forked process {}, which cannot use them: fork first, or start the child by "
      "exec",
      driver_process, getpid());
}

}  // namespace

std::string text_of(const DriverCalls& calls, CUresult result) {
  const char *name = nullptr, *text = nullptr;
  calls.cuGetErrorName(result, &name);
  calls.cuGetErrorString(result, &text);
  return fmt::format("{}: {}", name ? name : fmt::format("error {}", int(result)), text ? text : "no text");
}

Card::Card(const DriverCalls& calls, int number) : calls_(calls), number_(number) {
  check(calls.cuDeviceGet(&handle_, number), "cuDeviceGet");
  char name[256] = {};
  check(calls.cuDeviceGetName(name, sizeof name, handle_), "cuDeviceGetName");
  name_ = name;
  std::size_t bytes = 0;
  check(calls.cuDeviceTotalMem(&bytes, handle_), "cuDeviceTotalMem");
  total_bytes_ = std::int64_t(bytes);
}

const Card::Parts& Card::parts() {
  if (has_parts_.load(std::memory_order_acquire)) return parts_;
  const std::lock_guard lock(mutex_);
  if (!has_parts_.load(std::memory_order_relaxed)) {
    make_parts();
    has_parts_.store(true, std::memory_order_release);
  }
  return parts_;
}

void Card::make_parts() {
  const BesideCaptures beside_captures(calls_);
  // A part stays when a later one cannot be made: the next call goes on from there.
  Parts& made = parts_;
  if (!made.context) check(calls_.cuDevicePrimaryCtxRetain(&made.context, handle_), "cuDevicePrimaryCtxRetain");
  check(calls_.cuCtxPushCurrent(made.context), "cuCtxPushCurrent");
  struct Pop {
    const DriverCalls& calls;
    ~Pop() {
      CUcontext popped;
      calls.cuCtxPopCurrent(&popped);
    }
  } const pop{calls_};
  int multiprocessors = 1;
  check(calls_.cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, handle_),
        "cuDeviceGetAttribute");
  made.multiprocessors = unsigned(multiprocessors);
  if (!made.allocations) check(calls_.cuStreamCreate(&made.allocations, CU_STREAM_NON_BLOCKING), "cuStreamCreate");

  CUmemPoolProps of_pool{};
  of_pool.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  of_pool.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  of_pool.location.id = handle_;
  if (!made.pool) check(calls_.cuMemPoolCreate(&made.pool, &of_pool), "cuMemPoolCreate");
  // The cards that can use its memory.
  int count = 0;
  check(calls_.cuDeviceGetCount(&count), "cuDeviceGetCount");
  for (int other = 0; other < count; ++other) {
    CUdevice peer;
    int can_access = 0;
    check(calls_.cuDeviceGet(&peer, other), "cuDeviceGet");
    if (peer == handle_) continue;
    check(calls_.cuDeviceCanAccessPeer(&can_access, peer, handle_), "cuDeviceCanAccessPeer");
    if (!can_access) continue;
    const CUmemAccessDesc access = access_of(peer);
    check(calls_.cuMemPoolSetAccess(made.pool, &access, 1), "cuMemPoolSetAccess");
  }

  CUlibrary& library = made.library;
  const CUresult loaded =
      library ? CUDA_SUCCESS
              : calls_.cuLibraryLoadData(&library, tranship_cuda_kernels, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (loaded == CUDA_ERROR_NO_BINARY_FOR_GPU || loaded == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    throw_error(ErrorCode::unsupported, "this build has no device code for cuda:{}, {}: {}", number_, name_,
                text_of(calls_, loaded));
  check(loaded, "cuLibraryLoadData");
  // A kernel that is not loaded yet would wait, at its first launch, for all kernels that run.
  const auto kernel = [&](const char* name) {
    CUkernel out;
    CUfunction function;
    check(calls_.cuLibraryGetKernel(&out, library, name), "cuLibraryGetKernel");
    check(calls_.cuKernelGetFunction(&function, out), "cuKernelGetFunction");
    check(calls_.cuFuncLoad(function), "cuFuncLoad");
    return out;
  };
  made.kernels.move_lean = kernel("tranship_move_lean");
  made.kernels.move_deep = kernel("tranship_move_deep");
  made.kernels.move_tiled = kernel("tranship_move_tiled");
  made.kernels.fill = kernel("tranship_fill");
  made.kernels.map.resize(std::size_t(Arithmetic::f128) + 1);
#define TRANSHIP_MAP_KERNEL(name) made.kernels.map[std::size_t(Arithmetic::name)] = kernel("tranship_map_" #name);
  TRANSHIP_CARD_NUMBERS(TRANSHIP_MAP_KERNEL)
#undef TRANSHIP_MAP_KERNEL
}

void* Card::allocate(std::size_t size_bytes) {
  const Parts& made = parts();
  const Current current(*this);
  CUdeviceptr memory = 0;
  CUresult result = calls_.cuMemAllocFromPoolAsync(&memory, size_bytes, made.pool, made.allocations);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    {
      const std::lock_guard lock(pools_mutex_);
      for (Pool* const pool : pools_) pool->trim();
    }
    // Memory that was freed is free once the stream of allocations has come to it, and the driver's pool may keep it in
    // pieces that do not fit.
    note(finish_allocations(), "cuStreamQuery");
    calls_.cuMemPoolTrimTo(made.pool, 0);
    result = calls_.cuMemAllocFromPoolAsync(&memory, size_bytes, made.pool, made.allocations);
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
  check(result, "cuMemAllocFromPoolAsync");
  // Other streams may use the memory once the stream of allocations has come to it.
  const CUresult state = finish_allocations();
  if (state == CUDA_SUCCESS) return pointer_to(memory);
  calls_.cuMemFreeAsync(memory, made.allocations);
  if (state != CUDA_ERROR_NOT_READY) check(state, "cuStreamQuery");
  throw_error(ErrorCode::timeout, "cuda:{} has not allocated {} within 30 s", number_,
              amount(Index(size_bytes), "byte"));
}

void Card::add(Pool& pool) {
  const std::lock_guard lock(pools_mutex_);
  pools_.insert(&pool);
}

void Card::remove(Pool& pool) noexcept {
  if (is_forked.load(std::memory_order_relaxed)) return;  // Another thread may have had the lock.
  const std::lock_guard lock(pools_mutex_);
  pools_.erase(&pool);
}

CUresult Card::finish_allocations() {
  const Deadline deadline = Deadline::after_seconds(30);
  CUresult state = CUDA_ERROR_NOT_READY;
  do state = calls_.cuStreamQuery(parts_.allocations);
  while (state == CUDA_ERROR_NOT_READY && !deadline.passed());
  return state;
}

bool Card::reach(Card& owner, CUmemoryPool pool) {
  int can_access = 0;
  check(calls_.cuDeviceCanAccessPeer(&can_access, handle_, owner.handle_), "cuDeviceCanAccessPeer");
  if (!can_access) return false;
  const Parts& others = owner.parts();
  if (pool == others.pool) return true;  // since it was made
  const Current current(*this);
  if (pool) {
    const CUmemAccessDesc access = access_of(handle_);
    check(calls_.cuMemPoolSetAccess(pool, &access, 1), "cuMemPoolSetAccess");
    return true;
  }
  const std::lock_guard lock(mutex_);
  if (reached_.contains(&owner)) return true;
  const CUresult enabled = calls_.cuCtxEnablePeerAccess(others.context, 0);
  if (enabled != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) check(enabled, "cuCtxEnablePeerAccess");
  reached_.insert(&owner);
  return true;
}

void Card::upload(void* target, const void* pinned, std::size_t size_bytes) {
  const Current current(*this);
  TRANSHIP_CUDA_CALL(*this, cuMemcpyAsync, reinterpret_cast<CUdeviceptr>(target), reinterpret_cast<CUdeviceptr>(pinned),
                     size_bytes, parts().allocations);
  const CUresult state = finish_allocations();
  if (state == CUDA_ERROR_NOT_READY)
    throw_error(ErrorCode::timeout, "cuda:{} has not copied {} within 30 s", number_,
                amount(Index(size_bytes), "byte"));
  check(state, "cuStreamQuery");
}

void Card::deallocate(void* memory) noexcept {
  if (is_lost()) return;  // it went with the context
  const Current current(*this, std::nothrow);
  note(calls_.cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(memory), parts_.allocations), "cuMemFreeAsync");
}

std::string Card::loss() const {
  if (is_forked.load(std::memory_order_relaxed)) return fmt::format("cuda:{}: {}", number_, why_not_in_child());
  if (!is_lost()) return {};
  const std::lock_guard lock(loss_mutex_);
  return loss_;
}

void Card::add(LossWatcher& watcher) {
  const std::lock_guard lock(loss_mutex_);
  watchers_.insert(&watcher);
  if (is_lost_.load(std::memory_order_relaxed)) watcher.on_loss();
}

void Card::remove(LossWatcher& watcher) noexcept {
  const std::lock_guard lock(loss_mutex_);
  watchers_.erase(&watcher);
}

bool Card::note(CUresult result, const char* call) noexcept {
  if (result == CUDA_SUCCESS || !is_final(result)) return false;
  const std::lock_guard lock(loss_mutex_);
  if (!is_lost_.load(std::memory_order_relaxed)) {
    try {
      loss_ = fmt::format("cuda:{} was lost: {} says {}", number_, call, text_of(calls_, result));
    } catch (...) {
      loss_ = "lost";
    }
    for (LossWatcher* const watcher : watchers_) watcher->on_loss();
    is_lost_.store(true, std::memory_order_release);
  }
  return true;
}

void Card::check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  if (note(result, call)) throw_error(ErrorCode::device_lost, "{}", loss());
  const ErrorCode code = result == CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::no_memory : ErrorCode::invalid_use;
  throw_error(code, "cuda:{}: {} says {}", number_, call, text_of(calls_, result));
}

const Cards& cards() {
  if (is_forked.load(std::memory_order_relaxed)) {
    static const Cards& none = *new Cards{{}, why_not_in_child(), false};
    return none;
  }
  static const Cards& all = *[] {
    auto* const out = new Cards;
    const DriverFound& found = driver();
    out->why_none = found.why_none;
    out->is_malformed = found.is_malformed;
    if (!found.calls) return out;
    driver_process = getpid();
    pthread_atfork(nullptr, nullptr, [] { is_forked.store(true, std::memory_order_relaxed); });
    int count = 0;
    const CUresult counted = found.calls->cuDeviceGetCount(&count);
    if (counted != CUDA_SUCCESS)
      out->why_none = fmt::format("the CUDA driver counts no cards: {}", text_of(*found.calls, counted));
    else if (count == 0)
      out->why_none = "the CUDA driver sees no card";
    else
      try {
        for (int i = 0; i < count; ++i) out->all.push_back(new Card(*found.calls, i));
      } catch (const Error& error) {
        out->why_none = error.message();
        out->all.clear();
      }
    return out;
  }();
  return all;
}

void Cards::check_text() const {
  if (is_malformed) throw_error(ErrorCode::bad_text, "{}", why_none);
}

Current::Current(Card& card) : card_(card) {
  if (is_in_host_function) return;
  card.check(push(card.parts().context), "cuCtxPushCurrent");
}

Current::Current(Card& card, std::nothrow_t) noexcept : card_(card) {
  if (is_in_host_function || !card.has_parts()) return;
  card.note(push(card.parts().context), "cuCtxPushCurrent");
}

CUresult Current::push(CUcontext wanted) noexcept {
  beside_captures_.emplace(card_.calls());
  CUcontext now = nullptr;
  card_.calls().cuCtxGetCurrent(&now);
  if (now == wanted) return CUDA_SUCCESS;
  const CUresult result = card_.calls().cuCtxPushCurrent(wanted);
  is_pushed_ = result == CUDA_SUCCESS;
  return result;
}

Current::~Current() {
  CUcontext popped;
  if (is_pushed_) card_.calls().cuCtxPopCurrent(&popped);
}

}  // namespace tranship::cuda
