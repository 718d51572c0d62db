#include "our_methods.hpp"

namespace contest {
namespace {

namespace ts = tranship;

enum class Way { overlapped, in_sequence, stencil_only };

/// The field, the result of the stencil, and the exchange; all ways share them.
struct Fluid {
  Fluid(const Work& work, ts::World& world)
      : u(world, distribution_of(work, Side::from)), v(world, distribution_of(work, Side::from)), halo({u}) {}
  ts::Array<double> u, v;
  ts::HaloExchange halo;
};

double stencil_at(const double* u, std::int64_t plane, std::int64_t row) {
  return u[-plane] + u[plane] + u[-row] + u[row] + u[-1] + u[1] - 6 * u[0];
}

class Step final : public HaloMethod {
 public:
  Step(const Work& work, int rank, std::shared_ptr<Fluid> fluid, Way way)
      : HaloMethod(work, rank), fluid_(std::move(fluid)), way_(way) {
    use(Fields{fluid_->u.data()});
    for (int d = 0; d < 3; ++d) inner_.low[d] = work.width + 1, inner_.extents[d] = field_.interior[d] - 2;
    // The rest around the inner box: two slabs a dimension, each without the cells of the slabs before it.
    Box rest = {{work.width, work.width, work.width}, {field_.interior[0], field_.interior[1], field_.interior[2]}};
    owned_ = rest;
    for (int d = 0; d < 3; ++d) {
      Box low = rest, high = rest;
      low.extents[d] = high.extents[d] = 1;
      high.low[d] += rest.extents[d] - 1;
      slabs_.push_back(low), slabs_.push_back(high);
      rest.low[d] += 1, rest.extents[d] -= 2;
    }
  }
  std::string name() const override {
    return way_ == Way::overlapped ? "tranship" : way_ == Way::in_sequence ? "in sequence" : "limit";
  }
  void spoil() override {
    // The stencil alone finds the ghosts of an exchange before it.
    if (way_ != Way::stencil_only) HaloMethod::spoil();
    for (std::int64_t i = 0; i < field_.size; ++i) fluid_->v.data()[i] = -1;
  }
  double read() override { return sum(fluid_->v.data(), field_.size); }
  std::int64_t count_wrong(double salt) override {
    std::int64_t wrong = way_ == Way::stencil_only ? 0 : HaloMethod::count_wrong(salt);
    for_each_cell_of(
        owned_, [&](std::int64_t at) { wrong += fluid_->v.data()[at] != stencil_at(fields_[0] + at, plane(), row()); });
    return wrong;
  }
  void run() override {
    switch (way_) {
      case Way::overlapped:
        fluid_->halo.start();
        apply(inner_);
        fluid_->halo.finish();
        for (const Box& slab : slabs_) apply(slab);
        return;
      case Way::in_sequence:
        fluid_->halo();
        apply(owned_);
        return;
      case Way::stencil_only:
        apply(owned_);
        return;
    }
  }

 private:
  std::int64_t row() const { return field_.stored[2]; }
  std::int64_t plane() const { return field_.stored[1] * field_.stored[2]; }
  template <class F>
  void for_each_cell_of(const Box& box, F&& f) const {
    for (std::int64_t i = box.low[0]; i < box.low[0] + box.extents[0]; ++i)
      for (std::int64_t j = box.low[1]; j < box.low[1] + box.extents[1]; ++j) {
        const std::int64_t at = i * plane() + j * row() + box.low[2];
        for (std::int64_t k = 0; k < box.extents[2]; ++k) f(at + k);
      }
  }
  void apply(const Box& box) const {
    const double* u = fields_[0];
    double* v = fluid_->v.data();
    const std::int64_t plane_elements = plane(), row_elements = row();
    for_each_cell_of(box, [&](std::int64_t at) { v[at] = stencil_at(u + at, plane_elements, row_elements); });
  }

  std::shared_ptr<Fluid> fluid_;
  Way way_;
  Box owned_, inner_;
  std::vector<Box> slabs_;
};

}  // namespace

Methods stencil_methods(ts::World& world, const Work& work) {
  const auto fluid = std::make_shared<Fluid>(work, world);
  Methods methods;
  for (const Way way : {Way::overlapped, Way::in_sequence, Way::stencil_only})
    methods.push_back(std::make_unique<Step>(work, world.rank(), fluid, way));
  return methods;
}

}  // namespace contest
