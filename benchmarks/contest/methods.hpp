// Bases of methods whose data lies in plain local arrays: writing, spoiling, reading, checking.
#pragma once

#include <utility>

#include <contest/act.hpp>
#include <contest/memory.hpp>
#include <contest/work.hpp>

namespace contest {

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
  /// Sets where the local arrays lie. Must be called before any other member.
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
  /// Sets where the fields lie, one after the other. Must be called before any other member.
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
