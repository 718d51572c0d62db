#include <cstring>

#include <contest/act.hpp>

namespace contest {
namespace {

class Actor {
 public:
  Actor(Stage& stage, int rank) : stage_(stage), rank_(rank) {}

  void open(Methods methods) {
    methods_ = std::move(methods);
    if (rank_ == 0) stage_.methods = std::int32_t(methods_.size());
    for (std::size_t m = 0; m < methods_.size() && m < methods_max; ++m) {
      Method& method = *methods_[m];
      if (rank_ == 0) std::strncpy(stage_.method_names[m], method.name().c_str(), text_bytes - 1);
      method.write(++salt_);
      method.spoil();
      pass(stage_.barrier, stage_.ranks);
      method.run();
      pass(stage_.barrier, stage_.ranks);
      stage_.wrong_cells[rank_][m] = method.count_wrong(salt_);
      if (rank_ == 0) stage_.moved_bytes[m] = method.moved_bytes();
    }
  }

  void run(const Command& command) {
    Method& method = *methods_[command.method];
    double used = 0;
    for (int op = 0; op < command.ops; ++op) {
      if (command.freshness != Freshness::warm) method.write(++salt_);
      if (command.freshness == Freshness::cold) used += flush();
      pass(stage_.barrier, stage_.ranks);
      const std::int64_t begin_ns = now_ns();
      method.run();
      stage_.spans[rank_][op] = {begin_ns, now_ns()};
      pass(stage_.barrier, stage_.ranks);
      if (command.freshness != Freshness::warm) used += method.read();
    }
    used_ = used;
  }

  void close() { methods_.clear(); }

 private:
  /// Walks over more memory than any cache of ours holds, writing, so that nothing else is left in them.
  double flush() {
    constexpr std::size_t elements = std::size_t{64} << 20 >> 3;
    if (walked_.empty()) walked_.resize(elements);
    for (std::size_t i = 0; i < elements; i += 8) walked_[i] += 1;
    return walked_[0];
  }

  Stage& stage_;
  int rank_;
  Methods methods_;
  double salt_ = 0;
  std::vector<double> walked_;
  volatile double used_ = 0;
};

}  // namespace

void act(Stage& stage, int rank, const std::function<Methods(const Work&)>& methods_for) {
  Actor actor(stage, rank);
  for (std::uint32_t turn = 0;;) {
    turn = await_turn(stage, turn);
    const Command command = stage.command;
    switch (command.verb) {
      case Verb::open:
        actor.open(methods_for(command.work));
        break;
      case Verb::run:
        actor.run(command);
        break;
      case Verb::close:
      case Verb::quit:
        actor.close();
        break;
    }
    answer(stage);
    if (command.verb == Verb::quit) return;
  }
}

}  // namespace contest
