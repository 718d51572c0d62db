#include <cstring>

#include "our_methods.hpp"

namespace contest {
namespace {

namespace ts = tranship;

class Halo final : public HaloMethod {
 public:
  Halo(const Work& work, ts::World& world) : HaloMethod(work, world.rank()) {
    std::vector<ts::ArrayRef> arrays;
    Fields fields;
    for (int k = 0; k < work.fields; ++k) {
      const ts::Array<double> array(world, distribution_of(work, Side::from));
      arrays.push_back(array);
      fields.push_back(array.data());
    }
    use(std::move(fields));
    exchange_ = std::make_unique<ts::HaloExchange>(arrays);
  }
  std::string name() const override { return "tranship"; }
  void run() override { (*exchange_)(); }

 private:
  std::unique_ptr<ts::HaloExchange> exchange_;
};

/// The limit: each thread copies as many bytes as its ghosts have, straight through, with libc's memcpy.
class Memcpy final : public Method {
 public:
  Memcpy(const Work& work, int rank) : size_(payload_cells(work, rank)), from_(memory(size_)), to_(memory(size_)) {}
  std::string name() const override { return "limit"; }
  void write(double salt) override {
    for (std::int64_t i = 0; i < size_; ++i) from_[i] = salt + double(i);
  }
  void spoil() override { to_[0] = -1; }
  double read() override { return sum(to_.get(), size_); }
  std::int64_t count_wrong(double salt) override {
    return to_[0] != salt || to_[size_ - 1] != salt + double(size_ - 1);
  }
  void run() override { std::memcpy(to_.get(), from_.get(), std::size_t(size_) * sizeof(double)); }

 private:
  std::int64_t size_;
  Memory from_, to_;
};

}  // namespace

Methods halo_methods(ts::World& world, const Work& work) {
  Methods methods;
  methods.push_back(std::make_unique<Halo>(work, world));
  methods.push_back(std::make_unique<Memcpy>(work, world.rank()));
  return methods;
}

}  // namespace contest
