// Memory of cards and pools, pinned and registered memory of the host, and what an address is.
#include <algorithm>

#include <tranship/cuda/software/calls.hpp>

namespace tranship::cuda::software {
namespace {

/// Memory for `stream`, at once: the work that uses it comes later. Takes back what the stream frees before.
CUresult allocate_ordered(State& all, Stream& stream, const Pool& pool, CUdeviceptr* out, std::size_t bytes) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (pool.is_unreachable) return CUDA_ERROR_INVALID_DEVICE;
  Card& owner = *all.cards[std::size_t(pool.card)];
  const auto take_back = [&](bool of_any_stream) -> Address {
    for (auto free = owner.pending_frees.begin(); free != owner.pending_frees.end(); ++free) {
      const auto range = all.memory.find(free->first);
      if (!range || range->pool != pool.number || range->bytes < bytes || (!of_any_stream && free->stream != &stream))
        continue;
      const Address first = free->first;
      static_cast<FreeOp&>(*free->op).first = 0;
      if (free->stream != &stream) {
        const auto wait = std::make_shared<MarkOp>(*stream.card);
        wait->after.push_back(free->op);
        all.submit_op(stream, wait);
      }
      owner.pending_frees.erase(free);
      return first;
    }
    return 0;
  };
  Address first = stream.capture ? 0 : take_back(false);
  if (!first) first = all.memory.allocate(pool.card, bytes, pool.number);
  // A pool lets a stream wait for what another one frees before it has no memory to give.
  if (!first && !stream.capture) first = take_back(true);
  if (!first) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = first;
  return CUDA_SUCCESS;
}

/// The pool with a number; null where there is no pool of that number.
CUmemoryPool pool_of(State& all, std::uint64_t number) {
  const Lock lock(all.mutex);
  Pool* found = nullptr;
  for (Pool* const pool : all.pools)
    if (pool->number == number) found = pool;
  for (const auto& card : all.cards)
    if (card->default_pool.number == number) found = &card->default_pool;
  return reinterpret_cast<CUmemoryPool>(found);
}

CUresult attribute_of(State& all, void* out, CUpointer_attribute attribute, CUdeviceptr address) {
  const auto range = all.memory.find(address);
  const bool is_accessible = range && (range->loads | range->stores);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(out) =
          range ? reinterpret_cast<CUcontext>(all.cards[std::size_t(range->card)].get()) : nullptr;
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(out) =
          !range ? 0 : unsigned(range->is_of_host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(out) = is_accessible ? address : 0;
      break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      *static_cast<void**>(out) = range && range->is_of_host() ? pointer_to(address) : nullptr;
      break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<unsigned long long*>(out) = range ? range->first : 0;
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(out) = 0;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(out) = range ? range->card : -2;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(out) = range ? range->first : 0;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(out) = range ? range->bytes : 0;
      break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<unsigned*>(out) = is_accessible;
      break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *static_cast<CUmemoryPool*>(out) = range ? pool_of(all, range->pool) : nullptr;
      break;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

}  // namespace

namespace calls {

CUresult cuMemGetInfo(std::size_t* free, std::size_t* total) {
  return on_card(Kind::plain, [&](State& all, Card& card, Lock&) {
    *total = all.memory.capacity_bytes();
    *free = *total - all.memory.used_bytes(card.number);
    return CUDA_SUCCESS;
  });
}
CUresult cuMemAlloc(CUdeviceptr* out, std::size_t bytes) {
  return on_card(Kind::unsafe, [&](State& all, Card& card, Lock&) {
    if (!out || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    const Address first = all.memory.allocate(card.number, bytes);
    if (!first) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = first;
    return CUDA_SUCCESS;
  });
}
CUresult cuMemFree(CUdeviceptr address) {
  return on_card(Kind::unsafe, [&](State& all, Card& current, Lock& lock) {
    if (address == 0) return CUDA_SUCCESS;
    const auto range = all.memory.find(address);
    if (!range || range->place != Place::device || range->first != address) return CUDA_ERROR_INVALID_VALUE;
    Card& card = *all.cards[std::size_t(range->card)];
    for (const PendingFree& free : card.pending_frees)
      if (free.first == address) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = all.wait_for_all(lock, card); result != CUDA_SUCCESS) return result;
    all.memory.release(address);
    return current.failure;
  });
}
CUresult cuMemAllocAsync(CUdeviceptr* out, std::size_t bytes, CUstream handle) {
  return on_stream(handle, [&](State& all, Stream& stream, Lock&) {
    return allocate_ordered(all, stream, stream.card->default_pool, out, bytes);
  });
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool_handle, CUstream handle) {
  return on_stream(handle, [&](State& all, Stream& stream, Lock&) {
    auto* const pool = reinterpret_cast<Pool*>(pool_handle);
    if (!all.pools.count(pool)) return CUDA_ERROR_INVALID_VALUE;
    return allocate_ordered(all, stream, *pool, out, bytes);
  });
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  return on_stream(handle, [&](State& all, Stream& stream, Lock&) {
    if (address == 0) return CUDA_ERROR_INVALID_VALUE;
    const auto range = all.memory.find(address);
    if (!range || range->place != Place::device || range->first != address) return CUDA_ERROR_INVALID_VALUE;
    Card& card = *all.cards[std::size_t(range->card)];
    for (const PendingFree& free : card.pending_frees)
      if (free.first == address) return CUDA_ERROR_INVALID_VALUE;
    const OpRef op = all.submit(stream, [=](Card& owner) {
      auto made = std::make_shared<FreeOp>(owner);
      made->first = address;
      return made;
    });
    if (op) card.pending_frees.push_back({Address(address), &stream, op});
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    if (!out || !properties || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
      return CUDA_ERROR_INVALID_VALUE;
    if (properties->location.id < 0 || properties->location.id >= int(all.cards.size()))
      return CUDA_ERROR_INVALID_DEVICE;
    auto* const pool = new Pool{properties->location.id, all.memory.add_pool(properties->location.id)};
    all.pools.insert(pool);
    *out = reinterpret_cast<CUmemoryPool>(pool);
    return CUDA_SUCCESS;
  });
}
CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    auto* const pool = reinterpret_cast<Pool*>(handle);
    if (!all.pools.count(pool)) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& card : all.cards)
      if (pool == &card->default_pool) return CUDA_ERROR_INVALID_VALUE;
    all.pools.erase(pool);
    delete pool;  // what was allocated from it stays until it is freed
    return CUDA_SUCCESS;
  });
}
CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute, void* value) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    return value && all.pools.count(reinterpret_cast<Pool*>(handle)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* access, std::size_t count) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    auto* const pool = reinterpret_cast<Pool*>(handle);
    if (!access || !all.pools.count(pool)) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
      const int card = access[i].location.id;
      if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
      if (card < 0 || card >= int(all.cards.size())) return CUDA_ERROR_INVALID_DEVICE;
      // The card of the pool keeps its access.
      if (card == pool->card && access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_DEVICE;
      if (card == pool->card || access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || !all.options.is_apart) continue;
      // Where the pool has no memory yet, the next allocation may be what fails.
      if (all.memory.has_memory_of(pool->number) || all.options.is_punctual || all.random.below(2) == 0)
        return CUDA_ERROR_INVALID_DEVICE;
      pool->is_unreachable = true;
      return CUDA_SUCCESS;
    }
    for (std::size_t i = 0; i < count; ++i)
      all.memory.let_reach_pool(access[i].location.id, pool->number, access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE,
                                access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    return CUDA_SUCCESS;
  });
}
CUresult cuMemPoolTrimTo(CUmemoryPool handle, std::size_t) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    return all.pools.count(reinterpret_cast<Pool*>(handle)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemHostAlloc(void** out, std::size_t bytes, unsigned) {
  return on_card(Kind::unsafe, [&](State& all, Card&, Lock&) {
    if (!out || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    const Address first = all.memory.allocate_pinned(bytes);
    if (!first) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = pointer_to(first);
    return CUDA_SUCCESS;
  });
}
CUresult cuMemFreeHost(void* memory) {
  return on_card(Kind::unsafe, [&](State& all, Card&, Lock& lock) {
    const auto first = reinterpret_cast<Address>(memory);
    const auto range = all.memory.find(first);
    if (!range || range->place != Place::pinned || range->first != first) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& card : all.cards)
      if (const CUresult result = all.wait_for_all(lock, *card); result != CUDA_SUCCESS && card.get() == current_card())
        return result;
    all.memory.release_pinned(first);
    return CUDA_SUCCESS;
  });
}
CUresult cuMemHostRegister(void* memory, std::size_t bytes, unsigned) {
  return on_card(Kind::unsafe, [&](State& all, Card&, Lock&) {
    if (!memory || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (all.memory.is_of_cards(reinterpret_cast<Address>(memory))) return CUDA_ERROR_INVALID_VALUE;
    return all.memory.register_host(reinterpret_cast<Address>(memory), bytes)
               ? CUDA_SUCCESS
               : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  });
}
CUresult cuMemHostUnregister(void* memory) {
  return on_card(Kind::unsafe, [&](State& all, Card&, Lock& lock) {
    const auto first = reinterpret_cast<Address>(memory);
    const auto range = all.memory.find(first);
    if (!range || range->place != Place::registered || range->first != first)
      return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    for (const auto& card : all.cards)
      if (const CUresult result = all.wait_for_all(lock, *card); result != CUDA_SUCCESS && card.get() == current_card())
        return result;
    all.memory.unregister_host(first);
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** out, CUdeviceptr address) {
  // It answers for failed cards, too.
  State* const all = callable();
  if (!all) return why_not_callable();
  if (in_host_function) return CUDA_ERROR_NOT_PERMITTED;
  if (!attributes || !out) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i)
    if (const CUresult result = attribute_of(*all, out[i], attributes[i], address); result != CUDA_SUCCESS)
      return result;
  return CUDA_SUCCESS;
}
CUresult cuMemGetAddressRange(CUdeviceptr* first, std::size_t* bytes, CUdeviceptr address) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    const auto range = all.memory.find(address);
    if (!range) return CUDA_ERROR_NOT_FOUND;
    if (first) *first = range->first;
    if (bytes) *bytes = range->bytes;
    return CUDA_SUCCESS;
  });
}

}  // namespace calls
}  // namespace tranship::cuda::software
