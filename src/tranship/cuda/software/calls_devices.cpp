// Devices, contexts and errors.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include <tranship/base/error.hpp>
#include <tranship/cuda/software/calls.hpp>

namespace tranship::cuda::software {
namespace {

/// The contexts of a thread. It outlives what the thread destroys at its end.
struct Contexts {
  static constexpr int count_max = 64;
  Card* all[count_max];
  int count;

  bool empty() const { return count == 0; }
  Card*& back() { return all[count - 1]; }
  void pop_back() { --count; }
  void push_back(Card* card) {
    TRANSHIP_ASSERT(count < count_max);
    all[count++] = card;
  }
};
constinit thread_local Contexts contexts = {};

std::atomic<bool> has_ended = false;

CUcontext handle_of(Card* card) {
  return reinterpret_cast<CUcontext>(card);
}
Card* card_of(State& all, CUcontext context) {
  for (const auto& card : all.cards)
    if (handle_of(card.get()) == context) return card.get();
  return nullptr;
}
template <class F>
CUresult on_device(CUdevice device, F f) {
  State* const all = callable();
  if (!all) return why_not_callable();
  if (in_host_function) return CUDA_ERROR_NOT_PERMITTED;
  const Lock lock(all->mutex);
  if (device < 0 || device >= int(all->cards.size())) return CUDA_ERROR_INVALID_DEVICE;
  return f(*all, *all->cards[std::size_t(device)]);
}

struct ErrorText {
  CUresult error;
  const char* name;
  const char* text;
};
#define TRANSHIP_ERROR(name, text) \
  { name, #name, text }
constexpr ErrorText error_texts[] = {
    TRANSHIP_ERROR(CUDA_SUCCESS, "no error"),
    TRANSHIP_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    TRANSHIP_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    TRANSHIP_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    TRANSHIP_ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    TRANSHIP_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    TRANSHIP_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    TRANSHIP_ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    TRANSHIP_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    TRANSHIP_ERROR(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices"),
    TRANSHIP_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    TRANSHIP_ERROR(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    TRANSHIP_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    TRANSHIP_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    TRANSHIP_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    TRANSHIP_ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    TRANSHIP_ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
    TRANSHIP_ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                   "part or all of the requested memory range is already mapped"),
    TRANSHIP_ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
    TRANSHIP_ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    TRANSHIP_ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    TRANSHIP_ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
    TRANSHIP_ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    TRANSHIP_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    TRANSHIP_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    TRANSHIP_ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    TRANSHIP_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    TRANSHIP_ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream"),
    TRANSHIP_ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                   "operation would make the legacy stream depend on a capturing blocking stream"),
};
#undef TRANSHIP_ERROR
const ErrorText* text_of(CUresult error) {
  const auto* const found = std::find_if(std::begin(error_texts), std::end(error_texts),
                                         [&](const ErrorText& one) { return one.error == error; });
  return found == std::end(error_texts) ? nullptr : found;
}

}  // namespace

State* callable() noexcept {
  return has_ended.load(std::memory_order_acquire) ? nullptr : state();
}
CUresult why_not_callable() noexcept {
  return has_ended.load(std::memory_order_acquire) ? CUDA_ERROR_DEINITIALIZED : CUDA_ERROR_NOT_INITIALIZED;
}

Card* current_card() noexcept {
  return contexts.empty() ? nullptr : contexts.back();
}

namespace calls {

CUresult cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!callable()) return has_ended ? CUDA_ERROR_DEINITIALIZED : CUDA_ERROR_NO_DEVICE;
  [[maybe_unused]] static const int is_registered =
      std::atexit([] { has_ended.store(true, std::memory_order_release); });
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  if (!callable()) return why_not_callable();
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = int(callable()->cards.size());
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return on_device(ordinal, [&](State&, Card&) {
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}
CUresult cuDeviceGetName(char* name, int room, CUdevice device) {
  return on_device(device, [&](State&, Card&) {
    if (!name || room < 1) return CUDA_ERROR_INVALID_VALUE;
    std::strncpy(name, "software card", std::size_t(room));
    name[room - 1] = 0;
    return CUDA_SUCCESS;
  });
}
CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
  return on_device(device, [&](State& all, Card&) {
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    *bytes = all.memory.capacity_bytes();
    return CUDA_SUCCESS;
  });
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return on_device(device, [&](State&, Card&) {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    *value = 0;
    switch (attribute) {
      case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
      case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
        *value = 1024;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
        *value = 64;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
        *value = 0x7fffffff;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
      case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
        *value = 65535;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
        *value = int(shared_of_block);
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = int(shared_of_block_on_request);
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        *value = int(shared_of_multiprocessor);
        break;
      case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        *value = 32;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
      case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
        *value = registers_of_multiprocessor;
        break;
      case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = multiprocessors;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        *value = lanes_of_multiprocessor;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
        *value = blocks_of_multiprocessor;
        break;
      case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = 9;
        break;
      case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *value = 4 << 20;
        break;
      case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
      case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
      case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
      case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
      case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
      case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
      case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
      case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
      case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
        *value = 1;
        break;
      default:
        break;
    }
    return CUDA_SUCCESS;
  });
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return on_device(device, [&](State& all, Card&) {
    if (peer < 0 || peer >= int(all.cards.size())) return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer && !all.options.is_apart;
    return CUDA_SUCCESS;
  });
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  const ErrorText* const found = text_of(error);
  *name = found ? found->name : nullptr;
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  // Why a card has failed is said here as well. The text is not changed until begin_anew().
  if (State* const all = callable()) {
    const Lock lock(all->mutex);
    const Card* const card = current_card();
    if (card && card->failure == error && error != CUDA_SUCCESS) {
      *text = card->failure_text.c_str();
      return CUDA_SUCCESS;
    }
  }
  const ErrorText* const found = text_of(error);
  *text = found ? found->text : nullptr;
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return on_device(device, [&](State&, Card& card) {
    if (card.failure != CUDA_SUCCESS) return card.failure;
    ++card.retained;
    *context = handle_of(&card);
    return CUDA_SUCCESS;
  });
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return on_device(device, [&](State&, Card& card) {
    if (card.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    --card.retained;
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  if (!callable()) return why_not_callable();
  *context = handle_of(current_card());
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  State* const all = callable();
  if (!all) return why_not_callable();
  if (!context) {
    if (!contexts.empty()) contexts.pop_back();
    return CUDA_SUCCESS;
  }
  Card* const card = card_of(*all, context);
  if (!card) return CUDA_ERROR_INVALID_CONTEXT;
  if (contexts.empty())
    contexts.push_back(card);
  else
    contexts.back() = card;
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context) {
  State* const all = callable();
  if (!all) return why_not_callable();
  Card* const card = card_of(*all, context);
  if (!card) return context ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
  contexts.push_back(card);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  if (!callable()) return why_not_callable();
  if (contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context) *context = handle_of(contexts.back());
  contexts.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  if (!callable()) return why_not_callable();
  const Card* const card = current_card();
  if (!card) return CUDA_ERROR_INVALID_CONTEXT;
  *device = card->number;
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() {
  return on_card(Kind::forbidden, [](State& all, Card& card, Lock& lock) { return all.wait_for_all(lock, card); });
}
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  return on_card(Kind::plain, [&](State& all, Card& card, Lock&) {
    const Card* const other = card_of(all, peer);
    if (!other || other == &card) return CUDA_ERROR_INVALID_DEVICE;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (all.options.is_apart) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (!card.peers.insert(other->number).second) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    all.memory.let_reach(card.number, other->number, true);
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  return on_card(Kind::plain, [&](State& all, Card& card, Lock&) {
    const Card* const other = card_of(all, peer);
    if (!other) return CUDA_ERROR_INVALID_CONTEXT;
    if (card.peers.erase(other->number) == 0) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    all.memory.let_reach(card.number, other->number, false);
    return CUDA_SUCCESS;
  });
}

}  // namespace calls
}  // namespace tranship::cuda::software
