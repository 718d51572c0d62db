// Private: HostsServer, the thread of a process that serves the ranks of other machines while the process's own ranks
// compute. One thread serves the engines of all worlds that the process is in.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace tranship {

class HostsEngine;

class HostsServer {
 public:
  /// The one of this process. It is never destroyed, since worlds may end as late as they like.
  static HostsServer& here();

  /// Serves the engine from now on. The first one starts the thread.
  void add(HostsEngine& engine);
  /// The thread does not use the engine any more when this returns. The last one ends the thread.
  void remove(HostsEngine& engine) noexcept;

 private:
  struct Served {
    HostsEngine* engine = nullptr;
    std::uint64_t looks = 0;     ///< that its rank had made before it was last served
    std::int64_t active_ns = 0;  ///< when something last came, or its rank was looking for it
  };
  void run();
  /// Returns how long none of them has to be served.
  std::int64_t serve_all(std::unique_lock<std::mutex>& lock);
  /// Calls f, with the mutex released. The engine stays until it returns.
  template <class F>
  void use(HostsEngine& engine, std::unique_lock<std::mutex>& lock, F&& f);

  std::mutex mutex_;  // guards what follows
  std::vector<Served> served_;
  HostsEngine* in_use_ = nullptr;
  bool has_thread_ = false;  // which has not ended
  struct Thread;
  std::unique_ptr<Thread> thread_;
  std::condition_variable changed_;
};

}  // namespace tranship
