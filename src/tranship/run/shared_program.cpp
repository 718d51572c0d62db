#include "tranship/run/shared_program.hpp"

#include <map>
#include <mutex>

#include <tranship/base/mutex.hpp>

namespace tranship {
namespace {

struct Held {
  Mutex mutex;
  std::map<std::string, std::weak_ptr<const Program>> programs;
};

Held& held() {
  static auto& all = *new Held;
  return all;
}

}  // namespace

std::shared_ptr<const Program> shared_program(const std::string& name, FunctionRef<Program()> make) {
  Held& all = held();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.programs, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const Program>& known = all.programs[name];
  std::shared_ptr<const Program> program = known.lock();
  if (!program) known = program = std::make_shared<const Program>(make());
  return program;
}

}  // namespace tranship
