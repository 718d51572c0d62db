#include "tranship/program/mscclpp_limits.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include <tranship/base/fail.hpp>
#include <tranship/program/step_shape.hpp>
#include <tranship/program/verify.hpp>

namespace tranship {
namespace {

// Per thread block, unless stated otherwise.
constexpr Index steps_max = 64;
constexpr Index channels_max = 16;        // per kind
constexpr Index remote_buffers_max = 16;  // per kind
constexpr Index channels_of_step_max = 8;
constexpr Index buffers_of_step_max = 10;  // for sources, and for targets
constexpr Index barriers_max = 16;         // per rank
constexpr Index semaphores_of_step_max = 16;

class Objections {
 public:
  explicit Objections(const Program& program) : program_(program) {}

  std::vector<std::string> run() {
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) look_at(rank);
    for (const UnknownKey& one : program_.unknown_keys)
      object("key", "the key {} is not known here; what it asks for is not proved", path_of(one));
    prove();
    std::vector<std::string> out;
    for (const auto& [what, said] : found_)
      out.push_back(said.places == 1 ? said.text
                                     : fmt::format("{}, and {} more place{}", said.text, said.places - 1,
                                                   said.places == 2 ? "" : "s"));
    return out;
  }

 private:
  struct Said {
    std::string text;
    Index places = 0;
  };
  /// Keeps the text of the first place of each kind only, and counts the others.
  template <class... Args>
  void object(std::string_view what, fmt::format_string<Args...> text, Args&&... args) {
    Said& said = found_[what];
    if (++said.places == 1) said.text = fmt::format(text, std::forward<Args>(args)...);
  }
  void limit(std::string_view what, Index has, Index most, const std::string& where) {
    if (has > most) object(what, "{} has {} {}; at most {} are executed", where, has, what, most);
  }

  void look_at(std::size_t rank) {
    const RankProgram& one = program_.ranks[rank];
    const std::string name = fmt::format("rank {}", rank);
    barriers_ = 0;
    for (std::size_t block = 0; block < one.blocks.size(); ++block)
      look_at(one.blocks[block], fmt::format("rank {}, block {}", rank, block));
    limit("barriers", barriers_, barriers_max, name);
  }

  void look_at(const ThreadBlock& block, const std::string& where) {
    Index steps = 0;
    for (std::size_t i = 0; i < block.steps.size(); ++i) {
      const Step& step = block.steps[i];
      ++steps;
      look_at(step, fmt::format("{}, step {}", where, i));
      if (!step.pipeline) continue;
      for (const Step& inner : step.pipeline->steps) {
        ++steps;
        look_at(inner, fmt::format("{}, step {}", where, i));
      }
    }
    limit("steps", steps, steps_max, where);
    for (int kind = 0; kind < channel_kinds; ++kind) {
      limit(kind == 0   ? "memory channels"
            : kind == 1 ? "port channels"
                        : "switch channels",
            static_cast<Index>(block.channels[kind].size()), channels_max, where);
      limit(kind == 0   ? "remote buffers by memory"
            : kind == 1 ? "remote buffers by ports"
                        : "remote buffers by switches",
            static_cast<Index>(block.remote_buffers[kind].size()), remote_buffers_max, where);
    }
  }

  void look_at(const Step& step, const std::string& where) {
    const std::string place = fmt::format("{} ({})", where, name_of(step.kind));
    const StepShape& shape = shape_of(step.kind);
    if (shape.channel != StepChannel::none && !shape.moves())
      limit("channels of one step", static_cast<Index>(step.ids.size()), channels_of_step_max, place);
    limit("sources of one step", step.sources, buffers_of_step_max, place);
    limit("targets of one step", static_cast<Index>(step.operands.size()) - step.sources, buffers_of_step_max, place);
    if (step.kind == StepKind::acquire || step.kind == StepKind::release)
      limit("semaphores of one step", static_cast<Index>(step.ids.size()), semaphores_of_step_max, place);
    if (step.kind == StepKind::barrier) barriers_ = std::max<Index>(barriers_, step.ids.at(0) + 1);
    if (combines(step) && step.names_reduction && step.reduction != Reduction::sum)
      object("reduction", "{} combines by {}; every reduction is a sum there", place, name_of(step.reduction));
    if (step.kind == StepKind::switch_reduce)
      object("switch reduction", "{} without a broadcast is refused there", place);
    has_flush_ = has_flush_ || step.kind == StepKind::flush;
    if (step.kind == StepKind::get && !step.operands.empty() && step.operands[0].first != step.operands.back().first)
      object("get", "{} from chunk {} to chunk {}: offsets of source and target are taken for each other there", place,
             step.operands[0].first, step.operands.back().first);
  }

  /// Adds the promises that the program needs and that MSCCL++ does not make.
  void prove() {
    const auto proof = attempt([&] { return prove_for_mscclpp(); });
    if (proof) return;
    if (proof.error().code() != ErrorCode::unsupported) throw proof.error();
    object("proof", "nothing is proved: {}", proof.error().message());
  }
  void prove_for_mscclpp() {
    constexpr std::size_t places_max = 1000;
    const Verification there = verify(program_, {.findings_max = places_max, .launched_by = LaunchedBy::mscclpp});
    if (there.is_right()) return;
    if (!verify(program_, {.findings_max = 1}).is_right())
      return object("fault", "the program is wrong, and nothing there would find out");
    const bool is_named = std::any_of(there.findings.begin(), there.findings.end(),
                                      [](const Finding& one) { return one.missing != Finding::Missing::none; });
    for (const Finding& one : there.findings)
      if (!is_named || one.missing != Finding::Missing::none) object(one);
  }
  void object(const Finding& finding) {
    switch (finding.missing) {
      case Finding::Missing::meeting:
        return object("meeting", "ranks do not meet between launches there: {}", finding.text);
      case Finding::Missing::end_of_launch:
        return object("end of launch", "a launch ends there before what others write has come: {}", finding.text);
      case Finding::Missing::port_completion:
        return object("port completion", "{} there: {}",
                      has_flush_ ? "a flush does nothing, and the end of a launch completes no request"
                                 : "the end of a launch completes no request of a port channel",
                      finding.text);
      case Finding::Missing::publication:
        return object("publication",
                      "relaxed signals and packets publish nothing there, not even where the launch ends: {}",
                      finding.text);
      case Finding::Missing::none:
        return object(name_of(finding.kind), "{} there: {}", name_of(finding.kind), finding.text);
    }
  }

  const Program& program_;
  std::map<std::string_view, Said> found_;
  Index barriers_ = 0;
  bool has_flush_ = false;
};

}  // namespace

std::vector<std::string> mscclpp_objections(const Program& program) {
  return Objections(program).run();
}

}  // namespace tranship
