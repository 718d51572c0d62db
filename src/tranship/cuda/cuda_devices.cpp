#include "tranship/cuda/cuda_devices.hpp"

#include <algorithm>
#include <any>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/cuda/cuda_stream.hpp>
#include <tranship/memory/device/driver.hpp>

namespace tranship::cuda {
namespace {

class CudaDriver final : public Driver {
 public:
  CudaDriver(Unit& unit, std::int64_t capacity_bytes) : unit_(unit), capacity_bytes_(capacity_bytes) {}

  Device device() const noexcept override { return unit_.device(); }
  void* allocate(std::size_t size_bytes) override {
    if (unit_.is_lost()) unit_.fail();
    const auto bytes = std::int64_t(size_bytes);
    if (unit_.used_bytes.fetch_add(bytes) > capacity_bytes_ - bytes) {
      unit_.used_bytes -= bytes;
      return nullptr;
    }
    try {
      if (void* const memory = unit_.card.allocate(size_bytes)) return memory;
    } catch (...) {
      unit_.used_bytes -= bytes;
      unit_.is_lost();
      throw;
    }
    unit_.used_bytes -= bytes;
    return nullptr;
  }
  void deallocate(void* memory, std::size_t size_bytes) noexcept override {
    unit_.used_bytes -= std::int64_t(size_bytes);
    unit_.card.deallocate(memory);
  }
  void add(Pool& pool) override { unit_.card.add(pool); }
  void remove(Pool& pool) noexcept override { unit_.card.remove(pool); }
  void* allocate_pinned(std::size_t size_bytes) override { return unit_.allocate_pinned(size_bytes); }
  void deallocate_pinned(void* memory, std::size_t size_bytes) noexcept override {
    unit_.deallocate_pinned(memory, size_bytes);
  }
  std::shared_ptr<void> register_foreign(void* first, std::size_t size_bytes) override {
    if (unit_.is_lost()) return {};
    const Current current(unit_.card);
    const CUresult result = unit_.card.calls().cuMemHostRegister(first, size_bytes, CU_MEMHOSTREGISTER_PORTABLE);
    // Memory that cannot be registered is copied through memory that is.
    if (unit_.card.note(result, "cuMemHostRegister") || result != CUDA_SUCCESS) return {};
    unit_.registered_bytes += std::int64_t(size_bytes);
    return {first, [&unit = unit_, size_bytes](void* memory) {
              unit.registered_bytes -= std::int64_t(size_bytes);
              if (unit.is_lost()) return;
              const Current there(unit.card, std::nothrow);
              unit.card.note(unit.card.calls().cuMemHostUnregister(memory), "cuMemHostUnregister");
            }};
  }
  std::string why_not_foreign(const void* first, std::size_t size_bytes) const override {
    if (unit_.is_lost()) unit_.fail();
    const Current current(unit_.card);
    const auto* const begin = static_cast<const std::byte*>(first);
    for (const std::byte* at : {begin, begin + size_bytes - 1}) {
      unsigned type = 0;
      int owner = -1;
      CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
      void* answers[] = {&type, &owner};
      TRANSHIP_CUDA_CALL(unit_.card, cuPointerGetAttributes, 2, asked, answers, reinterpret_cast<CUdeviceptr>(at));
      const Card& card = unit_.card;
      if (type == 0)
        return fmt::format("byte {} of the {} at {} is memory that the driver of card {} does not know", at - begin,
                           amount(size_bytes, "byte"), first, card.number());
      if (type == CU_MEMORYTYPE_DEVICE && owner != card.number())
        return fmt::format("byte {} of the {} at {} is memory of card {}, not of card {}", at - begin,
                           amount(size_bytes, "byte"), first, owner, card.number());
    }
    return {};
  }
  bool has_memory_at(const void* address) const noexcept override {
    unsigned type = 0, is_managed = 0;
    int owner = -1;
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void* answers[] = {&type, &is_managed, &owner};
    return !unit_.is_lost() &&
           unit_.card.calls().cuPointerGetAttributes(3, asked, answers, reinterpret_cast<CUdeviceptr>(address)) ==
               CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_DEVICE && !is_managed && owner == unit_.card.number();
  }
  std::int64_t capacity_bytes() const noexcept override { return std::min(capacity_bytes_, unit_.card.total_bytes()); }
  std::string memory_left() const override {
    if (unit_.is_lost()) return {};
    const Current current(unit_.card, std::nothrow);
    std::size_t free = 0, total = 0;
    if (unit_.card.calls().cuMemGetInfo(&free, &total) != CUDA_SUCCESS) return {};
    return fmt::format("the card has {} free of {}", amount(free, "byte"), total);
  }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<CudaStream>(unit_); }
  bool reaches(Device other) const noexcept override;
  bool is_host_memory() const noexcept override { return false; }
  bool runs_host_functions() const noexcept override { return false; }
  DriverCounts counts() const noexcept override {
    return {.launches = unit_.launches, .pinned_bytes = unit_.pinned_bytes, .registered_bytes = unit_.registered_bytes};
  }
  std::string loss() const override { return unit_.is_lost() ? unit_.loss() : std::string(); }

  class Set;
  const Set* set = nullptr;

 private:
  Unit& unit_;
  std::int64_t capacity_bytes_;
};

class CudaDriver::Set final : public DeviceSet {
 public:
  Set(const CudaDevices& wanted, const DeviceSetOptions& options) : capacity_bytes_(wanted.capacity_bytes) {
    const Cards& there = cards();
    there.check_text();
    if (wanted.capacity_bytes < 0)
      throw_error(ErrorCode::invalid_use, "a capacity of {} for each card; it must be 0 or more",
                  amount(wanted.capacity_bytes, "byte"));
    std::vector<int> numbers = wanted.cards;
    for (int card = 0; numbers.size() < there.all.size() && wanted.cards.empty(); ++card) numbers.push_back(card);
    for (const int number : numbers) {
      if (there.all.empty()) throw_error(ErrorCode::unsupported, "there is no card {}: {}", number, there.why_none);
      if (number < 0 || std::size_t(number) >= there.all.size())
        throw_error(ErrorCode::invalid_use, "there is no card {}; there {} {}", number,
                    there.all.size() == 1 ? "is" : "are", amount(there.all.size(), "card"));
      units_.push_back(std::make_unique<Unit>(*there.all[std::size_t(number)], int(units_.size()), options));
    }
  }
  int count() const noexcept override { return int(units_.size()); }
  Device device(int ordinal) const noexcept override { return Device::cuda(ordinal); }
  std::unique_ptr<Driver> make_driver(int ordinal) override {
    auto driver = std::make_unique<CudaDriver>(*units_[std::size_t(ordinal)], capacity_bytes_);
    driver->set = this;
    return driver;
  }
  bool reaches(int ordinal, int other) const noexcept {
    if (other < 0 || other >= count()) return false;
    const Card& mine = units_[std::size_t(ordinal)]->card;
    const Card& its = units_[std::size_t(other)]->card;
    int can_access = 0;
    return &mine == &its ||
           (!mine.is_lost() &&
            mine.calls().cuDeviceCanAccessPeer(&can_access, mine.handle(), its.handle()) == CUDA_SUCCESS &&
            can_access != 0);
  }

 private:
  std::int64_t capacity_bytes_;
  std::vector<std::unique_ptr<Unit>> units_;
};

bool CudaDriver::reaches(Device other) const noexcept {
  return other.is_host() || (other.kind() == DeviceKind::cuda && set->reaches(unit_.ordinal, other.ordinal()));
}

const DeviceFamily cuda_family{
    .kind = CudaDevices::kind,
    .make = [](const std::any& kind_options, const DeviceSetOptions& options) -> std::unique_ptr<DeviceSet> {
      return std::make_unique<CudaDriver::Set>(std::any_cast<const CudaDevices&>(kind_options), options);
    },
    .standard = []() -> std::optional<DevicesOfKind> {
      cards().check_text();
      if (cards().all.empty()) return {};
      return CudaDevices{};
    },
    .state =
        [] {
          const Cards& there = cards();
          there.check_text();
          if (there.all.empty()) return DeviceFamilyState{0, there.why_none};
          int version = 0;
          there.all[0]->calls().cuDriverGetVersion(&version);
          std::vector<std::string> names;
          for (const Card* card : there.all) names.push_back(card->name());
          return DeviceFamilyState{
              int(names.size()), fmt::format("{}; the driver is of CUDA {}.{}", join_text(names, ", "), version / 1000,
                                             version % 1000 / 10)};
        },
};

const bool is_registered = [] {
  register_devices(cuda_family);
  return true;
}();

}  // namespace
}  // namespace tranship::cuda

/// Programs that link tranship::cuda ask the linker for this name, and get the registration with it.
extern "C" const bool* tranship_cuda_devices() {
  return &tranship::cuda::is_registered;
}
