// Libraries, kernels and launches. A library's code is not looked at: its kernels are the twins of the same names.
#include <algorithm>
#include <cstring>

#include <tranship/cuda/software/calls.hpp>

namespace tranship::cuda::software {
namespace {

Kernel* kernel_of(State& all, const void* handle) {
  auto* const kernel = static_cast<Kernel*>(const_cast<void*>(handle));
  return all.kernels.count(kernel) ? kernel : nullptr;
}

CUresult launch(State& all, Stream& stream, const void* function, const GridShape& shape, bool is_cooperative,
                void** parameters, void** extra) {
  Kernel* const kernel = kernel_of(all, function);
  const auto refuse = [&](CUresult why) {
    if (stream.capture) stream.capture->is_invalid = true;
    return why;
  };
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  const KernelTwin& twin = *kernel->twin;
  for (int d = 0; d < 3; ++d)
    if (shape.grid[d] == 0 || shape.block[d] == 0) return refuse(CUDA_ERROR_INVALID_VALUE);
  if (shape.grid[0] > 0x7fffffff || shape.grid[1] > 65535 || shape.grid[2] > 65535 || shape.block[2] > 64)
    return refuse(CUDA_ERROR_INVALID_VALUE);
  const auto lanes = std::uint64_t(shape.block[0]) * shape.block[1] * shape.block[2];
  if (lanes > std::uint64_t(twin.lanes_max)) return refuse(CUDA_ERROR_INVALID_VALUE);
  if (shape.dynamic_shared_bytes + twin.shared_bytes > kernel->dynamic_shared_max)
    return refuse(CUDA_ERROR_INVALID_VALUE);
  const int fitting = multiprocessors * resident_blocks_max(twin, shape.lanes(), shape.dynamic_shared_bytes);
  if (fitting == 0) return refuse(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  if (is_cooperative && shape.blocks() > fitting) return refuse(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  const void* args = nullptr;
  if (parameters)
    args = parameters[0];
  else if (extra)
    for (void** one = extra; *one != CU_LAUNCH_PARAM_END; one += 2) {
      if (one[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) args = one[1];
      if (one[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && *static_cast<std::size_t*>(one[1]) != twin.args_bytes)
        return refuse(CUDA_ERROR_INVALID_VALUE);
    }
  if (!args && twin.args_bytes > 0) return refuse(CUDA_ERROR_INVALID_VALUE);
  const std::vector<unsigned char> bytes(static_cast<const unsigned char*>(args),
                                         static_cast<const unsigned char*>(args) + twin.args_bytes);
  // A kernel that is not loaded yet waits for all that the card has to do.
  const bool is_first = !all.is_eager && kernel->loaded.insert(stream.card->number).second;
  const std::vector<OpRef> before = is_first && !stream.capture ? all.all_work(*stream.card) : std::vector<OpRef>();
  all.submit(stream, [&twin, bytes, shape, is_cooperative, before](Card& card) {
    auto op = std::make_shared<KernelOp>(card, twin, bytes.data(), shape, is_cooperative);
    op->after = before;
    return op;
  });
  return CUDA_SUCCESS;
}

}  // namespace

namespace calls {

CUresult cuLibraryLoadData(CUlibrary* out, const void* code, CUjit_option*, void**, unsigned, CUlibraryOption*, void**,
                           unsigned) {
  State* const all = callable();
  if (!all) return why_not_callable();
  if (in_host_function) return CUDA_ERROR_NOT_PERMITTED;
  if (!out || !code) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(all->mutex);
  auto* const library = new Library;
  all->libraries.insert(library);
  *out = reinterpret_cast<CUlibrary>(library);
  return CUDA_SUCCESS;
}
CUresult cuLibraryUnload(CUlibrary handle) {
  State* const all = callable();
  if (!all) return why_not_callable();
  const Lock lock(all->mutex);
  auto* const library = reinterpret_cast<Library*>(handle);
  if (!all->libraries.count(library)) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& [name, kernel] : library->kernels) all->kernels.erase(kernel.get());
  all->libraries.erase(library);
  delete library;
  return CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary handle, const char* name) {
  State* const all = callable();
  if (!all) return why_not_callable();
  const Lock lock(all->mutex);
  auto* const library = reinterpret_cast<Library*>(handle);
  if (!all->libraries.count(library)) return CUDA_ERROR_INVALID_HANDLE;
  if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
  const KernelTwin* const twin = twin_named(name);
  if (!twin) return CUDA_ERROR_NOT_FOUND;
  auto& kernel = library->kernels[name];
  if (!kernel) {
    kernel = std::make_unique<Kernel>();
    kernel->twin = twin;
    kernel->library = library;
    all->kernels.insert(kernel.get());
  }
  *out = reinterpret_cast<CUkernel>(kernel.get());
  return CUDA_SUCCESS;
}
CUresult cuKernelGetFunction(CUfunction* out, CUkernel handle) {
  return on_card(Kind::plain, [&](State& all, Card& card, Lock&) {
    Kernel* const kernel = kernel_of(all, handle);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    // The code need not be on the card before the first launch; it may be.
    if (all.options.is_punctual) kernel->loaded.insert(card.number);
    *out = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
  });
}
CUresult cuFuncLoad(CUfunction handle) {
  return on_card(Kind::plain, [&](State& all, Card& card, Lock&) {
    Kernel* const kernel = kernel_of(all, handle);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    kernel->loaded.insert(card.number);
    return CUDA_SUCCESS;
  });
}
CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle, CUdevice device) {
  State* const all = callable();
  if (!all) return why_not_callable();
  const Lock lock(all->mutex);
  Kernel* const kernel = kernel_of(*all, handle);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  if (device < 0 || device >= int(all->cards.size())) return CUDA_ERROR_INVALID_DEVICE;
  kernel->loaded.insert(device);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = kernel->twin->lanes_max;
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = int(kernel->twin->shared_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = 0;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = kernel->twin->registers;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 90;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = int(kernel->dynamic_shared_max - kernel->twin->shared_bytes);
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice) {
  State* const all = callable();
  if (!all) return why_not_callable();
  const Lock lock(all->mutex);
  Kernel* const kernel = kernel_of(*all, handle);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
  if (value < 0 || std::size_t(value) + kernel->twin->shared_bytes > shared_of_block_on_request)
    return CUDA_ERROR_INVALID_VALUE;
  kernel->dynamic_shared_max = std::max(shared_of_block, std::size_t(value) + kernel->twin->shared_bytes);
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int lanes,
                                                     std::size_t dynamic_shared_bytes) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    const Kernel* const kernel = kernel_of(all, handle);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    if (!blocks || lanes < 1) return CUDA_ERROR_INVALID_VALUE;
    *blocks = dynamic_shared_bytes + kernel->twin->shared_bytes > kernel->dynamic_shared_max
                  ? 0
                  : resident_blocks_max(*kernel->twin, lanes, dynamic_shared_bytes);
    return CUDA_SUCCESS;
  });
}
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream handle, void** parameters,
                        void** extra) {
  return on_stream(handle, [&](State& all, Stream& stream, Lock&) {
    return launch(all, stream, function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes}, false,
                  parameters, extra);
  });
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  bool is_cooperative = false;
  for (unsigned i = 0; i < config->numAttrs; ++i)
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      is_cooperative = config->attrs[i].value.cooperative != 0;
  return on_stream(config->hStream, [&](State& all, Stream& stream, Lock&) {
    return launch(all, stream, function,
                  {{config->gridDimX, config->gridDimY, config->gridDimZ},
                   {config->blockDimX, config->blockDimY, config->blockDimZ},
                   config->sharedMemBytes},
                  is_cooperative, parameters, extra);
  });
}

}  // namespace calls
}  // namespace tranship::cuda::software
