#include "tranship/fabric/forked.hpp"

#include <mutex>

#include <pthread.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/context.hpp>

namespace tranship::detail {
namespace {

struct Contexts {
  std::mutex mutex;
  ContextList all;
};
Contexts& contexts() {
  static auto& contexts = *new Contexts;
  return contexts;
}

}  // namespace

void count_forks() {
  // The lock keeps the list unchanged while a fork copies it; the child has no other thread.
  [[maybe_unused]] static const int registered = [] {
    contexts();
    return pthread_atfork([] { contexts().mutex.lock(); }, [] { contexts().mutex.unlock(); },
                          [] {
                            ++forks;
                            for (Context* const context : contexts().all) context->close_in_child();
                            contexts().mutex.unlock();
                          });
  }();
}

ContextList::iterator add_forked(Context& context) {
  const std::lock_guard lock(contexts().mutex);
  return contexts().all.insert(contexts().all.end(), &context);
}
void remove_forked(ContextList::iterator context) noexcept {
  const std::lock_guard lock(contexts().mutex);
  contexts().all.erase(context);
}

void refuse_in_child(Rank rank) {
  if (rank < 0)
    throw_error(ErrorCode::invalid_use, "this process ({}) is a child of a rank, and no rank itself", getpid());
  throw_error(ErrorCode::invalid_use, "this process ({}) is a child of rank {}, and no rank itself", getpid(), rank);
}

}  // namespace tranship::detail
