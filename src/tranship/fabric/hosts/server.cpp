#include "tranship/fabric/hosts/server.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <unistd.h>

#include <tranship/base/deadline.hpp>
#include <tranship/fabric/hosts/engine.hpp>

namespace tranship {

namespace {

// Who has asked once often asks again soon; looking takes some microseconds.
constexpr std::int64_t busy_nap_ns = 50'000;
constexpr std::int64_t idle_nap_ns = 50'000'000;
// With several engines, the thread waits for one of them and polls the others.
constexpr std::int64_t shared_nap_ns = 1'000'000;
// A rank that looks so often serves the others itself, and the thread would take its core and its lock away from it.
constexpr std::uint64_t rank_looks_min = 8;
constexpr std::int64_t rank_nap_ns = 300'000;

}  // namespace

struct HostsServer::Thread {
  std::jthread thread;
};

HostsServer& HostsServer::here() {
  static std::mutex mutex;
  static std::pair<pid_t, HostsServer*> of_process;
  const std::lock_guard lock(mutex);
  // A child that was forked has no thread of its parent's.
  if (of_process.first != getpid()) of_process = {getpid(), new HostsServer};
  return *of_process.second;
}

void HostsServer::add(HostsEngine& engine) {
  std::unique_ptr<Thread> ended;
  const std::lock_guard lock(mutex_);
  if (!has_thread_) {
    ended = std::exchange(thread_, std::make_unique<Thread>(Thread{std::jthread([this] { run(); })}));
    has_thread_ = true;
  }
  served_.push_back({.engine = &engine, .active_ns = now_ns()});
  if (in_use_ != nullptr) in_use_->wake();
}

void HostsServer::remove(HostsEngine& engine) noexcept {
  std::unique_ptr<Thread> ended;  // MPI may have something to do when a thread ends, and may be finalised next
  std::unique_lock lock(mutex_);
  std::erase_if(served_, [&](const Served& one) { return one.engine == &engine; });
  const auto has_let_go = [&] { return in_use_ != &engine && !(served_.empty() && has_thread_); };
  do engine.wake();
  while (!changed_.wait_for(lock, std::chrono::seconds(1), has_let_go));
  if (!has_thread_) ended = std::move(thread_);
}

template <class F>
void HostsServer::use(HostsEngine& engine, std::unique_lock<std::mutex>& lock, F&& f) {
  in_use_ = &engine;
  lock.unlock();
  f();
  lock.lock();
  in_use_ = nullptr;
  changed_.notify_all();
}

std::int64_t HostsServer::serve_all(std::unique_lock<std::mutex>& lock) {
  std::int64_t nap_ns = served_.size() > 1 ? shared_nap_ns : idle_nap_ns;
  for (std::size_t i = 0; i < served_.size(); ++i) {
    Served served = served_[i];
    const std::uint64_t looks = served.engine->looks();
    const bool rank_serves = looks - std::exchange(served.looks, looks) >= rank_looks_min;
    bool any = false;
    if (!rank_serves)
      use(*served.engine, lock, [&] {
        while (served.engine->serve_one()) any = true;
      });
    const std::int64_t now = now_ns();
    if (any || rank_serves) served.active_ns = now;
    if (i < served_.size() && served_[i].engine == served.engine) served_[i] = served;
    nap_ns = std::min(nap_ns, rank_serves ? rank_nap_ns : std::max((now - served.active_ns) / 16, busy_nap_ns));
  }
  return nap_ns;
}

void HostsServer::run() {
  std::unique_lock lock(mutex_);
  while (!served_.empty()) {
    const std::int64_t nap_ns = serve_all(lock);
    if (served_.empty()) break;
    HostsEngine& first = *served_.front().engine;
    use(first, lock, [&] { first.wait(nap_ns); });
  }
  has_thread_ = false;
  changed_.notify_all();
}

}  // namespace tranship
