#include <contest/coherence.hpp>

#include "our_methods.hpp"

namespace contest {
namespace {

using namespace tranship;

/// A fake device has memory of its own and copies by memcpy, so the time is that of the copies and of the coherence.
class OurBuffer final : public TwoMemories {
 public:
  explicit OurBuffer(std::int64_t cells) : buffer_(ElementType::f64, {cells}, {.devices = &devices_}) {}

  double* begin(Place place, Use use, Cells cells) override {
    const Access access{
        .device = place == Place::host ? Device::host() : Device::fake(0),
        .region = Region::interval(cells.first, cells.first + cells.count),
    };
    switch (use) {
      case Use::read:
        lease_ = buffer_.read(access);
        break;
      case Use::write:
        lease_ = buffer_.write(access);
        break;
      case Use::add:
        lease_ = buffer_.accumulate(Combine::sum, access);
        break;
    }
    return static_cast<double*>(lease_.view().data);
  }
  void end(Place, Use) override { lease_.close(); }
  std::int64_t moved_bytes() override { return devices_.ledger().sums().bytes; }

 private:
  Devices devices_{{.kinds = {FakeDevices{.count = 1}}}};
  Buffer buffer_;
  Lease lease_;
};

}  // namespace

Methods coherence_methods(const Work& work) {
  Methods methods;
  methods.push_back(coherence_method(work, "tranship", std::make_unique<OurBuffer>(work.axes[0].extent)));
  return methods;
}

}  // namespace contest
