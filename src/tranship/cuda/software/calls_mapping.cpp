// Virtual memory: pieces that are created, mapped and exported by a descriptor.
#include <fcntl.h>
#include <unistd.h>

#include <tranship/cuda/software/calls.hpp>

namespace tranship::cuda::software {
namespace {

constexpr std::size_t granularity_bytes = std::size_t(2) << 20;

bool is_whole(std::size_t bytes) {
  return bytes > 0 && bytes % granularity_bytes == 0;
}

}  // namespace

namespace calls {

CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  return on_card(Kind::plain, [&](State&, Card&, Lock&) {
    if (!bytes || !properties) return CUDA_ERROR_INVALID_VALUE;
    *bytes = granularity_bytes;
    return CUDA_SUCCESS;
  });
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* out, std::size_t bytes, const CUmemAllocationProp* properties,
                     unsigned long long flags) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    if (!out || !properties || flags != 0 || !is_whole(bytes) || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
      return CUDA_ERROR_INVALID_VALUE;
    const int card = properties->location.id;
    if (card < 0 || card >= int(all.cards.size())) return CUDA_ERROR_INVALID_DEVICE;
    auto physical = all.memory.create(card, bytes);
    if (!physical) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = all.next_handle++;
    all.handles[*out] = {std::move(physical),
                         (properties->requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0};
    return CUDA_SUCCESS;
  });
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    return all.handles.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
CUresult cuMemAddressReserve(CUdeviceptr* out, std::size_t bytes, std::size_t alignment, CUdeviceptr,
                             unsigned long long flags) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    if (!out || flags != 0 || !is_whole(bytes) || (alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
    const Address first = all.memory.reserve(bytes, alignment);
    if (!first) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = first;
    return CUDA_SUCCESS;
  });
}
CUresult cuMemAddressFree(CUdeviceptr first, std::size_t bytes) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    return all.memory.unreserve(first, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
CUresult cuMemMap(CUdeviceptr first, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    const auto found = all.handles.find(handle);
    if (found == all.handles.end() || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (offset != 0 || bytes != found->second.first->bytes) return CUDA_ERROR_NOT_SUPPORTED;
    return all.memory.map(first, bytes, found->second.first) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
CUresult cuMemUnmap(CUdeviceptr first, std::size_t bytes) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    return all.memory.unmap(first, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
CUresult cuMemSetAccess(CUdeviceptr first, std::size_t bytes, const CUmemAccessDesc* access, std::size_t count) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    if (!access) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
      if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
      const int card = access[i].location.id;
      if (card < 0 || card >= int(all.cards.size())) return CUDA_ERROR_INVALID_DEVICE;
      if (all.options.is_apart && access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
        if (const auto range = all.memory.find(first); range && range->card != card) return CUDA_ERROR_INVALID_DEVICE;
      const bool may_load = access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
      const bool may_store = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      if (!all.memory.set_access(first, bytes, card, may_load, may_store)) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}
CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long flags) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    const auto found = all.handles.find(handle);
    if (found == all.handles.end() || !out || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    if (!found->second.second) return CUDA_ERROR_INVALID_VALUE;
    const int file = fcntl(found->second.first->file, F_DUPFD_CLOEXEC, 0);
    if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *static_cast<int*>(out) = file;
    return CUDA_SUCCESS;
  });
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* descriptor,
                                        CUmemAllocationHandleType type) {
  return on_card(Kind::plain, [&](State& all, Card& card, Lock&) {
    if (!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
    auto physical = all.memory.import(card.number, int(reinterpret_cast<std::intptr_t>(descriptor)));
    if (!physical) return CUDA_ERROR_INVALID_VALUE;
    *out = all.next_handle++;
    all.handles[*out] = {std::move(physical), true};
    return CUDA_SUCCESS;
  });
}

}  // namespace calls
}  // namespace tranship::cuda::software
