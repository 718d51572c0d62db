// What methods have in common whose data lies in plain local arrays: writing, spoiling, reading, checking.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include <contest/act.hpp>
#include <contest/work.hpp>

namespace contest {

struct Freed {
  void operator()(double* memory) const { std::free(memory); }
};
/// Memory as anybody gets it, aligned to a cache line, or more, and touched by the calling thread.
using Memory = std::unique_ptr<double[], Freed>;
inline Memory memory(std::int64_t elements, std::size_t alignment = 64) {
  const std::size_t bytes = (std::size_t(elements) * sizeof(double) + alignment - 1) / alignment * alignment;
  auto* start = static_cast<double*>(std::aligned_alloc(alignment, bytes > 0 ? bytes : alignment));
  if (!start) throw std::bad_alloc();
  for (std::int64_t i = 0; i < elements; ++i) start[i] = 0;
  return Memory(start);
}

class RedistributionMethod : public Method {
 public:
  RedistributionMethod(const Work& work, int rank)
      : work_(work), rank_(rank), from_(local_of(work, Side::from, rank)), to_(local_of(work, Side::to, rank)) {}

  void write(double salt) override { contest::write(work_, from_, source_, salt); }
  void spoil() override {
    for (std::int64_t i = 0; i < to_.size; ++i) target_[i] = -1;
  }
  double read() override { return sum(target_, to_.size); }
  std::int64_t count_wrong(double salt) override { return contest::count_wrong(work_, to_, target_, salt); }

 protected:
  /// Must be called before anything else: where the local arrays lie.
  void use(double* source, double* target) { source_ = source, target_ = target; }

  const Work work_;
  const int rank_;
  const Local from_, to_;
  double* source_ = nullptr;
  double* target_ = nullptr;
};

class HaloMethod : public Method {
 public:
  HaloMethod(const Work& work, int rank)
      : work_(work), rank_(rank), field_(field_of(work, rank)), borders_(borders_of(work, rank)) {}

  void write(double salt) override { write_owned(work_, rank_, fields_, salt); }
  void spoil() override { write_ghosts(work_, rank_, fields_, -1); }
  double read() override { return sum_ghosts(work_, rank_, fields_); }
  std::int64_t count_wrong(double salt) override { return count_wrong_ghosts(work_, rank_, fields_, salt); }

 protected:
  /// Must be called before anything else: where the fields lie, one after the other.
  void use(double* fields) {
    for (int k = 0; k < work_.fields; ++k) fields_.push_back(fields + k * field_.size);
  }
  void use(Fields fields) { fields_ = std::move(fields); }
  std::int64_t elements() const { return field_.size * work_.fields; }

  const Work work_;
  const int rank_;
  const Field field_;
  const std::vector<Border> borders_;
  Fields fields_;
};

}  // namespace contest
