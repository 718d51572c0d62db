// Finds calls of the CUDA driver at run time through the runtime, so that no program links to libcuda: on a machine
// without a driver a program starts and reports what is missing.
#pragma once

#include <cuda.h>
#include <unistd.h>

#include "facts/options.hpp"

namespace tranship::device {

#define TRANSHIP_DRIVER_CALLS(X)           \
  X(cuGetErrorName, 12000)                 \
  X(cuMemAddressReserve, 12000)            \
  X(cuMemAddressFree, 12000)               \
  X(cuMemCreate, 12000)                    \
  X(cuMemRelease, 12000)                   \
  X(cuMemMap, 12000)                       \
  X(cuMemUnmap, 12000)                     \
  X(cuMemSetAccess, 12000)                 \
  X(cuMemGetAllocationGranularity, 12000)  \
  X(cuMemExportToShareableHandle, 12000)   \
  X(cuMemImportFromShareableHandle, 12000) \
  X(cuMemGetAccess, 12000)                 \
  X(cuMemGetAddressRange, 12000)           \
  X(cuMemsetD8, 12000)                     \
  X(cuPointerGetAttribute, 12000)          \
  X(cuDeviceGetAttribute, 12000)           \
  X(cuStreamWriteValue64, 12000)           \
  X(cuStreamWaitValue64, 12000)            \
  X(cuMulticastCreate, 12010)              \
  X(cuMulticastAddDevice, 12010)           \
  X(cuMulticastBindMem, 12010)             \
  X(cuMulticastUnbind, 12010)              \
  X(cuMulticastGetGranularity, 12010)

/// A member is null where the driver does not have the call.
struct Driver {
#define TRANSHIP_MEMBER(name, version) decltype(&::name) name = nullptr;
  // The headers define some calls as macros with a suffix, so members have such names too; declaration and use agree.
  TRANSHIP_DRIVER_CALLS(TRANSHIP_MEMBER)
#undef TRANSHIP_MEMBER

  static const Driver& get() {
    static const Driver driver;
    return driver;
  }
  std::string error(CUresult status) const {
    const char* text = nullptr;
    if (status == CUDA_SUCCESS) return "success";
    if (cuGetErrorName == nullptr || cuGetErrorName(status, &text) != CUDA_SUCCESS || text == nullptr) text = "unknown";
    return std::string(text) + " (" + std::to_string(int(status)) + ")";
  }
  int attribute(CUdevice_attribute which) const {
    int value = 0;
    const CUresult status = cuDeviceGetAttribute(&value, which, 0);
    return status == CUDA_SUCCESS ? value : -int(status);
  }

 private:
  Driver() {
    TRANSHIP_CUDA(cudaFree(nullptr));  // makes the context
#define TRANSHIP_LOAD(name, version) find(#name, version, reinterpret_cast<void**>(&this->name));
    TRANSHIP_DRIVER_CALLS(TRANSHIP_LOAD)
#undef TRANSHIP_LOAD
  }
  static void find(const std::string& name, unsigned version, void** to) {
    // The macro expands to a name with a suffix; the runtime wants the name without it.
    const std::string plain = name.substr(0, name.rfind("_v"));
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion(plain.c_str(), to, version, cudaEnableDefault, &found) != cudaSuccess ||
        found != cudaDriverEntryPointSuccess) {
      cudaGetLastError();
      *to = nullptr;
    }
  }
};

inline void must_drive(CUresult status, const char* call, const char* file, int line) {
  if (status == CUDA_SUCCESS) return;
  fault(std::string(call) + ": " + Driver::get().error(status) + " (" + file + ":" + std::to_string(line) + ")");
  std::_Exit(3);
}
#define TRANSHIP_DRIVER(call) \
  ::tranship::device::must_drive((::tranship::device::Driver::get().call), #call, __FILE__, __LINE__)

/// Owns physical memory of the card; with `exported`, other processes can import it by a file descriptor.
struct Physical {
  enum class Sharing { none, file_descriptor };

  CUmemGenericAllocationHandle handle = 0;
  std::size_t bytes = 0;

  static CUmemAllocationProp properties(Sharing sharing) {
    CUmemAllocationProp out = {};
    out.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    out.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    out.location.id = 0;
    if (sharing == Sharing::file_descriptor) out.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return out;
  }
  static std::size_t granularity(CUmemAllocationGranularity_flags which) {
    const CUmemAllocationProp wanted = properties(Sharing::none);
    std::size_t out = 0;
    TRANSHIP_DRIVER(cuMemGetAllocationGranularity(&out, &wanted, which));
    return out;
  }
};

inline CUmemAccessDesc read_and_write() {
  CUmemAccessDesc out = {};
  out.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  out.location.id = 0;
  out.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return out;
}

/// Maps an allocation at an address of its own.
inline CUdeviceptr mapped(const Physical& physical) {
  CUdeviceptr at = 0;
  const CUmemAccessDesc access = read_and_write();
  TRANSHIP_DRIVER(cuMemAddressReserve(&at, physical.bytes, 0, 0, 0));
  TRANSHIP_DRIVER(cuMemMap(at, physical.bytes, 0, physical.handle, 0));
  TRANSHIP_DRIVER(cuMemSetAccess(at, physical.bytes, &access, 1));
  return at;
}
inline void unmap(CUdeviceptr at, const Physical& physical) {
  TRANSHIP_DRIVER(cuMemUnmap(at, physical.bytes));
  TRANSHIP_DRIVER(cuMemAddressFree(at, physical.bytes));
}

}  // namespace tranship::device
