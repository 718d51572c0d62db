// A stream whose work is over when the test says so.
#pragma once

#include <algorithm>
#include <vector>

#include <tranship/memory/device/stream.hpp>

namespace tranship::test {

class ManualStream final : public Stream {
 public:
  Event give() { return {this, ++given}; }

  Device device() const noexcept override { return Device::fake(0); }
  Event event() override { return {this, given}; }
  void wait(Event event) override {
    check();
    waits.push_back(event);
  }
  void copy(const CopyBlock&, int, const void*, void*) override { ++given; }
  void fill(const CopyBlock&, int, const void*, void*) override { ++given; }
  void combine(const CopyBlock&, Combine, ElementType, const void*, void*) override { ++given; }
  void run(std::unique_ptr<Kernel>) override { ++given; }
  bool is_over(std::uint64_t number) override { return number <= over; }
  /// Counts as waiting, and makes it over, but for a stream that hangs.
  void finish(std::uint64_t number, Deadline) override {
    check();
    finishes.push_back(number);
    over = std::max(over, number);
  }

  std::uint64_t given = 0, over = 0;
  bool hangs = false;
  std::vector<Event> waits;
  std::vector<std::uint64_t> finishes;

 private:
  void check() const {
    if (hangs) throw Error(ErrorCode::timeout, "it hangs");
  }
};

}  // namespace tranship::test
