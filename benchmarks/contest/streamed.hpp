// A stream of frames by a method that moves one frame at a time: it writes, moves and reads each in turn.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <contest/act.hpp>
#include <contest/work.hpp>

namespace contest {

/// Returns the redistribution that moves one frame of a Task::stream.
inline Work frame_of(const Work& work) {
  Work out = work;
  out.task = Task::redistribution;
  return out;
}

class Streamed final : public Method {
 public:
  Streamed(const Work& work, std::unique_ptr<Method> method) : frames_(work.repeats), method_(std::move(method)) {}

  std::string name() const override { return method_->name(); }
  void write(double salt) override { salt_ = salt; }
  void spoil() override { method_->spoil(); }
  double read() override { return used_; }
  /// Frame k has the salt plus k.
  std::int64_t count_wrong(double salt) override { return method_->count_wrong(salt + double(frames_ - 1)); }
  void run() override {
    for (std::int64_t frame = 0; frame < frames_; ++frame) {
      method_->write(salt_ + double(frame));
      method_->run();
      used_ += method_->read();
    }
  }

 private:
  std::int64_t frames_;
  std::unique_ptr<Method> method_;
  double salt_ = 0, used_ = 0;
};

inline Methods streamed(const Work& work, Methods methods) {
  for (auto& method : methods) method = std::make_unique<Streamed>(work, std::move(method));
  return methods;
}

}  // namespace contest
