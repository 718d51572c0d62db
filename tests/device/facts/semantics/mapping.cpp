// Asks about memory that the driver's calls map: which object outlives which, how copies, memsets and questions about
// pointers treat a range over two mappings, and which wrong calls are refused. Read next: mapping_faults.cpp.
#include "facts/semantics/mapping.hpp"

#include "facts/semantics/cases.hpp"

namespace tranship::device {
namespace {

/// Returns true when the words on the card are value + i.
bool holds_words(CUdeviceptr at, std::size_t words, Word value) {
  std::vector<Word> seen(words);
  TRANSHIP_CUDA(cudaMemcpy(seen.data(), words_at(at), words * sizeof(Word), cudaMemcpyDeviceToHost));
  return count_words(seen.data(), words, value) == words;
}
void fill_words(CUdeviceptr at, std::size_t words, Word value) {
  TRANSHIP_CUDA(launch(nullptr, {64, 256}, put_words, words_at(at), unsigned(words), value));
  TRANSHIP_CUDA(cudaDeviceSynchronize());
}

void exported() {
  const Driver& driver = Driver::get();
  const std::size_t words = 1024;
  Physical physical = created(Physical::Sharing::file_descriptor);
  int descriptor = -1, second = -1;
  CUresult status =
      driver.cuMemExportToShareableHandle(&descriptor, physical.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (status != CUDA_SUCCESS) return told("cuMemExportToShareableHandle", driver.error(status), "success");
  status = driver.cuMemExportToShareableHandle(&second, physical.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  told("one allocation exported twice",
       driver.error(status) + (second == descriptor ? ", the same descriptor" : ", two descriptors"),
       "success, two descriptors");
  const auto imported = [&](int from, Physical& to) {
    to.bytes = physical.bytes;
    return driver.cuMemImportFromShareableHandle(&to.handle, reinterpret_cast<void*>(std::intptr_t(from)),
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  };
  {
    const CUdeviceptr at = mapped(physical);
    fill_words(at, words, 555);
    unmap(at, physical);
  }
  TRANSHIP_DRIVER(cuMemRelease(physical.handle));
  Physical one, other;
  status = imported(descriptor, one);
  if (status != CUDA_SUCCESS)
    return told("memory whose handle was released, imported by its descriptor", driver.error(status),
                "its bytes are there");
  CUdeviceptr at = mapped(one);
  told("memory whose handle was released, imported by its descriptor",
       holds_words(at, words, 555) ? "its bytes are there" : "its bytes are lost", "its bytes are there");
  status = imported(descriptor, other);
  told("a second import of one descriptor",
       driver.error(status) + (status != CUDA_SUCCESS       ? ""
                               : other.handle == one.handle ? ", the same handle"
                                                            : ", another handle"),
       "success, another handle");
  if (status == CUDA_SUCCESS) {
    const CUdeviceptr too = mapped(other);
    fill_words(too, words, 666);
    said("two imports of one descriptor are one memory", holds_words(at, words, 666), "yes");
    unmap(too, other);
    TRANSHIP_DRIVER(cuMemRelease(other.handle));
  }
  close(descriptor);
  close(second);
  fill_words(at, words, 777);
  said("imported memory can be used after its descriptors were closed", holds_words(at, words, 777), "yes");
  TRANSHIP_DRIVER(cuMemRelease(one.handle));
  fill_words(at, words, 888);
  said("mapped memory can be used after its handle was released", holds_words(at, words, 888), "yes");
  unmap(at, one);
  // Memory that the driver returns may hold what others wrote.
  Physical next = created(Physical::Sharing::none);
  at = mapped(next);
  std::vector<Word> seen(next.bytes / sizeof(Word));
  TRANSHIP_CUDA(cudaMemcpy(seen.data(), words_at(at), next.bytes, cudaMemcpyDeviceToHost));
  const std::size_t zeros = std::size_t(std::count(seen.begin(), seen.end(), Word(0)));
  told("memory of cuMemCreate begins",
       zeros == seen.size() ? "as zeros" : std::to_string(zeros) + " of " + std::to_string(seen.size()) + " words zero",
       "as zeros");
  unmap(at, next);
  TRANSHIP_DRIVER(cuMemRelease(next.handle));
}

/// Maps two allocations side by side in a reservation of four times their size.
void adjacent() {
  const Driver& driver = Driver::get();
  const Physical low = created(Physical::Sharing::none), high = created(Physical::Sharing::none);
  const std::size_t chunk = low.bytes, words = chunk / sizeof(Word);
  const CUmemAccessDesc access = read_and_write();
  CUdeviceptr at = 0;
  TRANSHIP_DRIVER(cuMemAddressReserve(&at, 4 * chunk, 0, 0, 0));
  TRANSHIP_DRIVER(cuMemMap(at, chunk, 0, low.handle, 0));
  TRANSHIP_DRIVER(cuMemMap(at + chunk, chunk, 0, high.handle, 0));
  CUresult status = driver.cuMemSetAccess(at, 2 * chunk, &access, 1);
  told("cuMemSetAccess over two mappings at once", driver.error(status), "success");
  if (status != CUDA_SUCCESS) {
    TRANSHIP_DRIVER(cuMemSetAccess(at, chunk, &access, 1));
    TRANSHIP_DRIVER(cuMemSetAccess(at + chunk, chunk, &access, 1));
  }

  // The range covers 1 MiB around the border.
  const std::size_t bytes = 1 << 20, count = bytes / sizeof(Word);
  const CUdeviceptr across = at + chunk - bytes / 2;
  const Stream stream;
  CardArray<Word> card(count);
  PinnedArray<Word> pinned(count);
  std::vector<Word> pageable(count);
  const auto copied = [&](const std::string& what, const auto& prepare, const auto& call, const auto& is_right) {
    prepare();
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    const cudaError_t called = call();
    const cudaError_t end = cudaStreamSynchronize(stream);
    told(what + " over two adjacent mappings of different allocations",
         called != cudaSuccess ? name_of(called)
         : end != cudaSuccess  ? "afterwards " + name_of(end)
         : is_right()          ? "works"
                               : "wrong bytes",
         "works");
  };
  const auto copy = [&](void* to, const void* from) {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
  };
  copied(
      "a kernel", [] {},
      [&] {
        return launch(stream, {64, 256}, put_words, words_at(across), unsigned(count), Word(11));
      },
      [&] { return holds_words(across, count / 2, 11) && holds_words(at + chunk, count / 2, 11 + count / 2); });
  copied(
      "cudaMemcpyAsync from pinned memory", [&] { write_words(pinned.data(), count, 22); },
      [&] { return copy(words_at(across), pinned.data()); },
      [&] { return holds_words(across, count / 2, 22) && holds_words(at + chunk, count / 2, 22 + count / 2); });
  copied(
      "cudaMemcpyAsync from pageable memory", [&] { write_words(pageable.data(), count, 33); },
      [&] { return copy(words_at(across), pageable.data()); },
      [&] { return holds_words(across, count / 2, 33) && holds_words(at + chunk, count / 2, 33 + count / 2); });
  copied(
      "cudaMemcpyAsync to pinned memory", [&] { fill_words(across, count, 44); },
      [&] { return copy(pinned.data(), words_at(across)); },
      [&] { return count_words(pinned.data(), count, 44) == count; });
  copied(
      "cudaMemcpyAsync to pageable memory", [&] { fill_words(across, count, 55); },
      [&] { return copy(pageable.data(), words_at(across)); },
      [&] { return count_words(pageable.data(), count, 55) == count; });
  copied(
      "cudaMemcpyAsync on the card", [&] { fill_words(across, count, 66); },
      [&] { return copy(card.data(), words_at(across)); },
      [&] { return holds_words(reinterpret_cast<CUdeviceptr>(card.data()), count, 66); });
  copied(
      "cudaMemcpy2DAsync, rows of 1 KiB at a pitch of 2 KiB,", [&] { fill_words(across, count, 77); },
      [&] {
        return cudaMemcpy2DAsync(card.data(), 1024, words_at(across), 2048, 1024, bytes / 2048, cudaMemcpyDefault,
                                 stream);
      },
      [&] {
        const std::vector<Word> seen = card.read();
        std::size_t right = 0;
        for (std::size_t i = 0; i < count / 2; ++i) right += seen[i] == 77 + i / 128 * 256 + i % 128;
        return right == count / 2;
      });
  const auto is_set = [&](unsigned char byte) {
    const std::vector<unsigned char> wanted(bytes, byte);
    std::vector<unsigned char> seen(bytes);
    // The copy runs one piece at a time, because it is not what the question is about.
    TRANSHIP_CUDA(cudaMemcpy(seen.data(), words_at(across), bytes / 2, cudaMemcpyDeviceToHost));
    TRANSHIP_CUDA(cudaMemcpy(seen.data() + bytes / 2, words_at(at + chunk), bytes / 2, cudaMemcpyDeviceToHost));
    return seen == wanted;
  };
  copied(
      "cudaMemsetAsync", [] {}, [&] { return cudaMemsetAsync(words_at(across), 0x5a, bytes, stream); },
      [&] { return is_set(0x5a); });
  if (driver.cuMemsetD8 != nullptr)
    copied(
        "cuMemsetD8", [] {},
        [&] {
          const cudaError_t out = cudaError_t(int(driver.cuMemsetD8(across, 0x3c, bytes)));
          TRANSHIP_CUDA(cudaDeviceSynchronize());
          return out;
        },
        [&] { return is_set(0x3c); });

  const auto range = [&](const std::string& what, CUdeviceptr of, const std::string& expectation) {
    CUdeviceptr base = 0;
    std::size_t size = 0;
    const CUresult asked = driver.cuMemGetAddressRange(&base, &size, of);
    const auto name = [&](CUdeviceptr address) {
      return address == at ? "the reservation" : address == at + chunk ? "the second mapping" : "another address";
    };
    told("cuMemGetAddressRange of " + what,
         asked != CUDA_SUCCESS ? driver.error(asked) : std::string("begins at ") + name(base) + ", " + size_name(size),
         expectation + "; a mapping is " + size_name(chunk) + ", the reservation " + size_name(4 * chunk));
  };
  if (driver.cuMemGetAddressRange != nullptr) {
    range("an address in the first of two adjacent mappings", at + 4096, "the mapping");
    range("an address in the second of two adjacent mappings", at + chunk + 4096, "the mapping");
    range("an address that is reserved and not mapped", at + 3 * chunk, "CUDA_ERROR_NOT_FOUND or _INVALID_VALUE");
  }
  const auto attributes = [&](const std::string& what, CUdeviceptr of, const std::string& expectation) {
    cudaPointerAttributes seen = {};
    const cudaError_t asked = cudaPointerGetAttributes(&seen, words_at(of));
    told("cudaPointerGetAttributes of " + what,
         asked != cudaSuccess ? name_of(asked)
                              : "type " + std::to_string(int(seen.type)) + ", device " + std::to_string(seen.device) +
                                    ", device pointer " +
                                    (seen.devicePointer == words_at(of) ? "the same"
                                     : seen.devicePointer == nullptr    ? "null"
                                                                        : "another") +
                                    ", host pointer " + (seen.hostPointer == nullptr ? "null" : "not null"),
         expectation);
  };
  attributes("mapped memory", at + chunk + 4096,
             "type 2, the card's, device 0, device pointer the same, host pointer null");
  attributes("reserved memory that is not mapped", at + 3 * chunk, "type 0, unregistered, or an error");
  {
    const Physical third = created(Physical::Sharing::none);
    TRANSHIP_DRIVER(cuMemMap(at + 2 * chunk, chunk, 0, third.handle, 0));
    attributes("mapped memory without access", at + 2 * chunk, "type 2, or type 0");
    if (driver.cuMemGetAccess != nullptr) {
      unsigned long long flags = 99;
      const CUmemLocation where = access.location;
      status = driver.cuMemGetAccess(&flags, &where, at + 2 * chunk);
      told("cuMemGetAccess of mapped memory without access", driver.error(status) + ", flags " + std::to_string(flags),
           "success, flags 0");
    }
    TRANSHIP_DRIVER(cuMemUnmap(at + 2 * chunk, chunk));
    TRANSHIP_DRIVER(cuMemRelease(third.handle));
  }
  TRANSHIP_DRIVER(cuMemUnmap(at, chunk));
  TRANSHIP_DRIVER(cuMemUnmap(at + chunk, chunk));
  // The same memory keeps its bytes when it is mapped in the other order.
  TRANSHIP_DRIVER(cuMemMap(at, chunk, 0, high.handle, 0));
  TRANSHIP_DRIVER(cuMemSetAccess(at, chunk, &access, 1));
  std::vector<Word> seen(words);
  TRANSHIP_CUDA(cudaMemcpy(seen.data(), words_at(at), chunk, cudaMemcpyDeviceToHost));
  Word byte = 0;
  std::memset(&byte, driver.cuMemsetD8 != nullptr ? 0x3c : 0x5a, sizeof byte);
  said("memory that was unmapped and mapped elsewhere keeps its bytes", seen[0] == byte, "yes");
  TRANSHIP_DRIVER(cuMemUnmap(at, chunk));
  TRANSHIP_DRIVER(cuMemRelease(low.handle));
  TRANSHIP_DRIVER(cuMemRelease(high.handle));
  TRANSHIP_DRIVER(cuMemAddressFree(at, 4 * chunk));
}

void addresses() {
  const Driver& driver = Driver::get();
  const std::size_t chunk = chunk_bytes();
  CUdeviceptr first = 0, wished = 0, aligned = 0;
  TRANSHIP_DRIVER(cuMemAddressReserve(&first, 16 * chunk, 0, 0, 0));
  TRANSHIP_DRIVER(cuMemAddressFree(first, 16 * chunk));
  CUresult status = driver.cuMemAddressReserve(&wished, chunk, 0, first + 4 * chunk, 0);
  told("cuMemAddressReserve at an address that is free and asked for",
       status != CUDA_SUCCESS        ? driver.error(status)
       : wished == first + 4 * chunk ? "that address"
                                     : "another address",
       "that address");
  if (status == CUDA_SUCCESS) {
    CUdeviceptr taken = 0;
    status = driver.cuMemAddressReserve(&taken, chunk, 0, wished, 0);
    told("cuMemAddressReserve at an address that is taken and asked for",
         status != CUDA_SUCCESS ? driver.error(status) : "another address", "another address");
    if (status == CUDA_SUCCESS) TRANSHIP_DRIVER(cuMemAddressFree(taken, chunk));
    TRANSHIP_DRIVER(cuMemAddressFree(wished, chunk));
  }
  const std::size_t alignment = std::size_t(1) << 34;
  status = driver.cuMemAddressReserve(&aligned, chunk, alignment, 0, 0);
  told("cuMemAddressReserve with an alignment of 16 GiB",
       status != CUDA_SUCCESS     ? driver.error(status)
       : aligned % alignment == 0 ? "aligned"
                                  : "not aligned",
       "aligned");
  if (status == CUDA_SUCCESS) TRANSHIP_DRIVER(cuMemAddressFree(aligned, chunk));
  CUdeviceptr odd = 0;
  status = driver.cuMemAddressReserve(&odd, chunk + 4096, 0, 0, 0);
  told("cuMemAddressReserve of a size that is no multiple of the granularity", driver.error(status),
       "CUDA_ERROR_INVALID_VALUE, or success");
  if (status == CUDA_SUCCESS) TRANSHIP_DRIVER(cuMemAddressFree(odd, chunk + 4096));
  const CUmemAllocationProp properties = Physical::properties(Physical::Sharing::none);
  CUmemGenericAllocationHandle handle = 0;
  status = driver.cuMemCreate(&handle, chunk + 4096, &properties, 0);
  told("cuMemCreate of a size that is no multiple of the granularity", driver.error(status),
       "CUDA_ERROR_INVALID_VALUE");
  if (status == CUDA_SUCCESS) TRANSHIP_DRIVER(cuMemRelease(handle));
  Physical secret = created(Physical::Sharing::none);
  int descriptor = -1;
  status = driver.cuMemExportToShareableHandle(&descriptor, secret.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  told("cuMemExportToShareableHandle of an allocation that was not made for it", driver.error(status),
       "CUDA_ERROR_INVALID_VALUE or _NOT_PERMITTED");
  if (status == CUDA_SUCCESS) close(descriptor);
  TRANSHIP_DRIVER(cuMemRelease(secret.handle));
}

/// The driver unmaps memory while a copy that uses it is pending.
void pending() {
  const Driver& driver = Driver::get();
  const Physical physical = created(Physical::Sharing::none);
  const Stream stream;
  const CUdeviceptr at = mapped(physical);
  const Gate gate(stream, 0.1);
  Word* const mark = Marks::next();
  TRANSHIP_CUDA(launch(stream, {}, put_word, mark, Word(1)));
  const CUresult status = driver.cuMemRelease(physical.handle);
  const bool held = gate.holds();
  told("cuMemRelease of mapped memory while a stream is held", driver.error(status) + (held ? ", returns" : ", waits"),
       "success, returns");
  gate.open();
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  unmap(at, physical);
}

/// Makes calls that should be refused. They come last, and nothing after them must succeed: after one that is not
/// refused, the state may be inconsistent.
void refused() {
  const Driver& driver = Driver::get();
  const Physical low = created(Physical::Sharing::none), high = created(Physical::Sharing::none);
  const std::size_t chunk = low.bytes;
  const CUmemAccessDesc access = read_and_write();
  CUdeviceptr at = 0;
  TRANSHIP_DRIVER(cuMemAddressReserve(&at, 4 * chunk, 0, 0, 0));
  TRANSHIP_DRIVER(cuMemMap(at, chunk, 0, low.handle, 0));
  TRANSHIP_DRIVER(cuMemMap(at + chunk, chunk, 0, high.handle, 0));
  TRANSHIP_DRIVER(cuMemSetAccess(at, chunk, &access, 1));
  TRANSHIP_DRIVER(cuMemSetAccess(at + chunk, chunk, &access, 1));
  const std::string invalid = "CUDA_ERROR_INVALID_VALUE";
  const auto tried = [&](const std::string& what, const std::string& expectation, CUresult status) {
    told(what, driver.error(status), expectation);
  };
  tried("cuMemMap where memory is mapped", invalid + " or _ALREADY_MAPPED",
        driver.cuMemMap(at, chunk, 0, high.handle, 0));
  tried("cuMemMap with an offset into the allocation", invalid + " or _NOT_SUPPORTED",
        driver.cuMemMap(at + 2 * chunk, chunk / 2, chunk / 2, low.handle, 0));
  tried("cuMemMap of half an allocation", invalid, driver.cuMemMap(at + 2 * chunk, chunk / 2, 0, low.handle, 0));
  tried("cuMemMap at an address that is not reserved", invalid,
        driver.cuMemMap(at + (CUdeviceptr(1) << 46), chunk, 0, low.handle, 0));
  tried("cuMemSetAccess over a mapping and reserved memory behind it", invalid,
        driver.cuMemSetAccess(at + chunk, 2 * chunk, &access, 1));
  tried("cuMemUnmap of reserved memory that is not mapped", invalid, driver.cuMemUnmap(at + 3 * chunk, chunk));
  tried("cuMemUnmap of half a mapping", invalid, driver.cuMemUnmap(at, chunk / 2));
  tried("cuMemUnmap of one mapping and half of the next", invalid, driver.cuMemUnmap(at, chunk + chunk / 2));
  tried("cuMemUnmap of two mappings at once", "success", driver.cuMemUnmap(at, 2 * chunk));
  tried("cuMemUnmap of them for the second time", invalid, driver.cuMemUnmap(at, 2 * chunk));
  tried("cuMemRelease", "success", driver.cuMemRelease(low.handle));
  tried("cuMemRelease for the second time", invalid, driver.cuMemRelease(low.handle));
  // cuMemMap of a released handle is left out: it ended the process with signal 11.
  tried("cuMemAddressFree of half of a reservation", invalid, driver.cuMemAddressFree(at, 2 * chunk));
  tried("cuMemMap, to ask the next", "success", driver.cuMemMap(at, chunk, 0, high.handle, 0));
  tried("cuMemAddressFree while memory is mapped", invalid, driver.cuMemAddressFree(at, 4 * chunk));
  tried("cuMemUnmap after that", "success", driver.cuMemUnmap(at, chunk));
  tried("cuMemAddressFree", "success", driver.cuMemAddressFree(at, 4 * chunk));
  tried("cuMemAddressFree for the second time", invalid, driver.cuMemAddressFree(at, 4 * chunk));
}

}  // namespace

void ask_mapping(const Options&) {
  exported();
  adjacent();
  addresses();
  pending();
  refused();
}

}  // namespace tranship::device
