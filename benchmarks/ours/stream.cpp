// Frames through a pipe with two buffers on each side: frame k + 1 is written and launched before frame k is read.
#include <tranship/array/pipe.hpp>

#include "our_methods.hpp"

namespace contest {
namespace {

namespace ts = tranship;

class Channel final : public Method {
 public:
  Channel(const Work& work, ts::World& world)
      : work_(work),
        from_(local_of(work, Side::from, world.rank())),
        to_(local_of(work, Side::to, world.rank())),
        pipe_(world, ts::ArraySpec{ts::ElementType::f64, distribution_of(work, Side::from)},
              ts::ArraySpec{ts::ElementType::f64, distribution_of(work, Side::to)}) {}

  std::string name() const override { return "tranship"; }
  void write(double salt) override { salt_ = salt; }
  void spoil() override {}
  double read() override { return used_; }
  std::int64_t count_wrong(double salt) override {
    return contest::count_wrong(work_, to_, last_, salt + double(work_.repeats - 1));
  }
  void run() override {
    send(0);
    for (std::int64_t frame = 0; frame < work_.repeats; ++frame) {
      if (frame + 1 < work_.repeats) send(frame + 1);
      last_ = static_cast<double*>(pipe_.receiver().get().view.data);
      used_ += sum(last_, to_.size);
      pipe_.receiver().put();
    }
  }

 private:
  void send(std::int64_t frame) {
    auto* out = static_cast<double*>(pipe_.sender().get().view.data);
    contest::write(work_, from_, out, salt_ + double(frame));
    pipe_.sender().put();
  }

  const Work work_;
  const Local from_, to_;
  ts::Pipe pipe_;
  double* last_ = nullptr;
  double salt_ = 0, used_ = 0;
};

}  // namespace

Methods stream_methods(ts::World& world, const Work& work) {
  Methods methods;
  methods.push_back(std::make_unique<Channel>(work, world));
  return methods;
}

}  // namespace contest
