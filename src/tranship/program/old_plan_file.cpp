// Reads plans of releases up to 0.7. There a channel belongs to a pair of buffers. Here it belongs to a pair of ranks,
// and a remote buffer names the buffer that it reaches.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/program/plan_words.hpp>
#include <tranship/program/step_shape.hpp>

namespace tranship::plan_words {
namespace {

struct OldWord {
  std::string_view old;
  std::string_view present;
};
constexpr std::array<OldWord, 7> renamed = {{{"rrc", "rre"},
                                             {"rrcs", "rres"},
                                             {"rs", "res"},
                                             {"rpkt", "repkt"},
                                             {"rspkt", "respkt"},
                                             {"tpkt", "cpkt"},
                                             {"cpkt", "upkt"}}};

std::string present_word(const std::string& word) {
  for (const OldWord& one : renamed)
    if (word == one.old) return std::string(one.present);
  return word;
}

/// Channels between one kind of buffer of this rank and one kind of buffer of the peers.
struct Pair {
  BufferKind own, peers;
  ChannelKind kind;
  bool operator<(const Pair& other) const {
    return std::tie(own, peers, kind) < std::tie(other.own, other.peers, other.kind);
  }
};

class OldRankReader {
 public:
  /// Adds unknown keys to `unknown`.
  OldRankReader(const Json& value, std::string where, Rank rank, std::vector<UnknownKey>& unknown)
      : object_(value, std::move(where)), rank_(rank), unknown_(unknown) {}

  RankProgram read() {
    require_id(object_, "rank", rank_);
    const char* const counts[buffer_kinds] = {"inputChunks", "outputChunks", "scratchChunks"};
    for (int kind = 0; kind < buffer_kinds; ++kind)
      out_.chunks[kind] = index_of(object_.at(counts[kind]), object_.path(counts[kind]));
    (void)object_.find("chunkGroups");  // an older way to number chunks
    read_channels();
    const std::string where = object_.path("threadblocks");
    for (const Json& block : list_of(object_.at("threadblocks"), where))
      out_.blocks.push_back(read_block(block, path(where, out_.blocks.size())));
    keep_others(object_, unknown_);
    return std::move(out_);
  }

 private:
  void read_channels() {
    for_each_object(object_.at("channels"), object_.path("channels"), unknown_, [&](JsonObject& channels) {
      const ChannelKind kind = channel_of(channels.at("type"), channels.path("type"));
      if (kind == ChannelKind::switched) {
        const BufferKind buffer = buffer_of(channels.at("buff"), channels.path("buff"));
        for_each_object(channels.at("rankGroups"), channels.path("rankGroups"), unknown_, [&](JsonObject& group) {
          begin(channels, {buffer, buffer, kind}, out_.switches.size());
          out_.switches.push_back({.buffer = buffer, .ranks = numbers_of(group.at("ranks"), group.path("ranks"))});
          (void)group.find("size");
        });
      } else {
        const Pair pair{buffer_of(channels.at("srcbuff"), channels.path("srcbuff")),
                        buffer_of(channels.at("dstbuff"), channels.path("dstbuff")), kind};
        auto& peers = out_.peers[static_cast<std::size_t>(kind)];
        begin(channels, pair, peers.size());
        for (const std::int32_t peer : numbers_of(channels.at("connectedTo"), channels.path("connectedTo"))) {
          peers.push_back(peer);
          ++count_[pair];
        }
      }
    });
  }

  /// Records where the channels of a pair begin among all channels of their kind.
  void begin(const JsonObject& channels, const Pair& pair, std::size_t first) {
    const auto [at, is_new] = first_.emplace(pair, first);
    if (pair.kind == ChannelKind::switched) {
      ++count_[pair];
      return;
    }
    if (!is_new)
      throw_error(ErrorCode::bad_file, "{}: {} channels of two buffers are listed twice", channels.where(),
                  name_of(pair.kind));
  }

  ThreadBlock read_block(const Json& value, const std::string& where) {
    JsonObject block(value, where);
    require_id(block, "block", static_cast<Index>(out_.blocks.size()));
    block_ = {};
    listed_.clear();
    for_each_object(block.at("channels"), block.path("channels"), unknown_, [&](JsonObject& channels) {
      const Pair pair{buffer_of(channels.at("src"), channels.path("src")),
                      buffer_of(channels.at("dst"), channels.path("dst")),
                      channel_of(channels.at("ctype"), channels.path("ctype"))};
      auto& ids = listed_[pair];
      for (const std::int32_t id : numbers_of(channels.at("cids"), channels.path("cids"))) {
        if (static_cast<std::size_t>(id) >= count_[pair])
          throw_error(ErrorCode::bad_file, "{}: {} channel {} does not exist: there are {} between these buffers",
                      channels.path("cids"), name_of(pair.kind), id, count_[pair]);
        ids.push_back(static_cast<std::int32_t>(first_[pair]) + id);
        add_once(block_.channels[static_cast<std::size_t>(pair.kind)], ids.back());
      }
    });
    const std::string steps = block.path("ops");
    for (const Json& op : list_of(block.at("ops"), steps))
      block_.steps.push_back(read_step(op, path(steps, block_.steps.size())));
    keep_others(block, unknown_);
    return std::move(block_);
  }

  static void add_once(std::vector<std::int32_t>& list, std::int32_t id) {
    if (std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
  }

  Step read_step(const Json& value, const std::string& where) {
    JsonObject op(value, where);
    Step step;
    step.names_reduction = false;
    bool has_channel = false;
    if (const Json* const type = op.find("ctype"))
      if (has_channel = tranship::word_of(*type, op.path("ctype")) != "none"; has_channel)
        step.channel = channel_of(*type, op.path("ctype"));
    const std::string word = present_word(tranship::word_of(op.at("name"), op.path("name")));
    step.kind = step_of(word, has_channel, step.channel, op.path("name"));
    count_of_step_ = op.has("cnt") ? index_of(op.at("cnt"), op.path("cnt")) : 0;
    const StepShape& shape = shape_of(step.kind);
    if (step.kind == StepKind::barrier) {
      step.ids = {number_of(op.at("barrier_id"), op.path("barrier_id"))};
      step.participants = number_of(op.at("nthread_blocks"), op.path("nthread_blocks"));
    }
    check_dependences(op);
    for (const char* const rank : {"src", "dst"})
      if (const Json* const named = op.find(rank); named && index_of(*named, op.path(rank)) != rank_)
        throw_error(ErrorCode::bad_file, "{}: found rank {} in a step of rank {}", op.path(rank),
                    index_of(*named, op.path(rank)), rank_);
    const std::vector<At> in = read_channel_list(op, "i", step), out = read_channel_list(op, "o", step);
    if (shape.moves()) {
      read_side(op, step, shape.sources, in, "srcs", "srcbuff", "srcoff");
      step.sources = static_cast<std::int32_t>(step.operands.size());
      read_side(op, step, shape.targets, out, "dsts", "dstbuff", "dstoff");
      repeat_sources(step, shape);
    }
    if (signals(step.kind) || waits(step.kind) || step.kind == StepKind::flush)
      for (const At& at : waits(step.kind) ? in : out) step.ids.push_back(at.channel);
    keep_others(op, unknown_);
    return step;
  }

  void check_dependences(JsonObject& op) const {
    const Json* const list = op.find("deps");
    if (!list) return;
    for_each_object(*list, op.path("deps"), unknown_, [&](JsonObject& one) {
      (void)one.at("step");
      if (const Index block = index_of(one.at("tb"), one.path("tb")); block != static_cast<Index>(out_.blocks.size()))
        throw_error(ErrorCode::unsupported, "{}: block {} waits for block {} without a barrier", one.path("tb"),
                    out_.blocks.size(), block);
    });
  }

  /// A channel of a step, and the place of the buffer that it reaches.
  struct At {
    std::int32_t channel;
    BufferKind buffer;
    Index first;
  };

  std::vector<At> read_channel_list(JsonObject& op, const char* side, const Step& step) {
    const std::string ids_key = fmt::format("{}_cids", side), buffers_key = fmt::format("{}_buff", side);
    const Json* const ids = op.find(ids_key);
    if (!ids) return {};
    Pair pair{BufferKind::input, BufferKind::input, step.channel};
    if (const Json* const buffers = op.find(buffers_key)) {
      JsonObject object(*buffers, op.path(buffers_key));
      pair.own = buffer_of(object.at("src"), object.path("src"));
      pair.peers = buffer_of(object.at("dst"), object.path("dst"));
      keep_others(object, unknown_);
    } else if (step.channel == ChannelKind::switched && op.has("srcbuff")) {
      pair.own = pair.peers = buffer_of(op.at(side[0] == 'i' ? "srcbuff" : "dstbuff"), op.path("srcbuff"));
    }
    const auto listed = listed_.find(pair);
    std::vector<At> out;
    for_each_object(*ids, op.path(ids_key), unknown_, [&](JsonObject& one) {
      const std::int32_t number = number_of(one.at("id"), one.path("id"));
      const std::size_t count = listed == listed_.end() ? 0 : listed->second.size();
      if (static_cast<std::size_t>(number) >= count)
        throw_error(ErrorCode::bad_file, "{}: channel {} does not exist: the block has {} between these buffers",
                    one.path("id"), number, count);
      const Json* const offset = one.find("off");
      out.push_back({.channel = listed->second[static_cast<std::size_t>(number)],
                     .buffer = pair.peers,
                     .first = offset ? index_of(*offset, one.path("off")) : 0});
    });
    return out;
  }

  /// Reads the operands of one side in the order of the shape: those of this rank from their keys, the others by
  /// channels.
  void read_side(JsonObject& op, Step& step, std::string_view letters, const std::vector<At>& remote,
                 const char* list_key, const char* buffer_key, const char* offset_key) {
    std::vector<Operand> local;
    if (op.has(buffer_key))
      local.push_back({.buffer = buffer_of(op.at(buffer_key), op.path(buffer_key)),
                       .first = index_of(op.at(offset_key), op.path(offset_key)),
                       .count = count_of_step_});
    if (const Json* const list = op.find(list_key))
      for_each_object(*list, op.path(list_key), unknown_, [&](JsonObject& one) {
        local.push_back({.buffer = buffer_of(one.at("buff"), one.path("buff")),
                         .first = index_of(one.at("off"), one.path("off")),
                         .count = count_of_step_});
      });
    std::size_t used = 0, reached = 0;
    for (std::size_t i = 0; used < local.size() || reached < remote.size(); ++i) {
      const Where where = shape_of_operand(letters, i).where;
      if (where == Where::here) {
        if (used == local.size()) break;
        step.operands.push_back(local[used++]);
      } else if (where == Where::peer) {
        if (reached == remote.size()) break;
        step.operands.push_back(remote_operand(remote[reached++], step.channel));
      } else {
        if (reached == remote.size()) break;
        const Index first = used < local.size() ? local[used++].first : remote[reached].first;
        const At& at = remote[reached++];
        step.operands.push_back({.buffer = at.buffer, .via = at.channel, .first = first, .count = count_of_step_});
      }
    }
    if (used < local.size() || reached < remote.size())
      throw_error(ErrorCode::bad_file, "{}: found {} of this rank and {} of peers; the step takes {}",
                  op.path(list_key), counted(Index(local.size()), "operand"), remote.size(), operands_text(letters));
  }

  Operand remote_operand(const At& at, ChannelKind kind) {
    const auto& peers = out_.peers[static_cast<std::size_t>(kind)];
    const Rank rank = peers[static_cast<std::size_t>(at.channel)];
    std::size_t i = 0;
    for (; i < out_.remote_buffers.size(); ++i)
      if (out_.remote_buffers[i].rank == rank && out_.remote_buffers[i].buffer == at.buffer) break;
    if (i == out_.remote_buffers.size())
      out_.remote_buffers.push_back({.rank = rank, .buffer = at.buffer, .access = {}});
    auto& access = out_.remote_buffers[i].access;
    if (std::find(access.begin(), access.end(), kind) == access.end()) access.push_back(kind);
    const auto id = static_cast<std::int32_t>(i);
    add_once(block_.remote_buffers[static_cast<std::size_t>(kind)], id);
    return {.buffer = at.buffer, .via = id, .first = at.first, .count = count_of_step_};
  }

  /// Repeats one source that goes to several peers.
  static void repeat_sources(Step& step, const StepShape& shape) {
    if (shape.pairing != Pairing::pairs || step.sources != 1) return;
    const std::size_t targets = step.operands.size() - 1;
    if (targets < 2) return;
    const Operand source = step.operands[0];
    step.operands.insert(step.operands.begin(), targets - 1, source);
    step.sources = static_cast<std::int32_t>(targets);
  }

  JsonObject object_;
  Rank rank_;
  std::vector<UnknownKey>& unknown_;
  RankProgram out_;
  ThreadBlock block_;
  std::map<Pair, std::size_t> first_, count_;
  std::map<Pair, std::vector<std::int32_t>> listed_;
  Index count_of_step_ = 0;
};

}  // namespace

Program read_old_program(const Json& document) {
  JsonObject top(document, "");
  Program out;
  out.name = tranship::word_of(top.at("name"), "name");
  // Releases up to 0.5 have this spelling.
  const char* const collective = top.has("colletive") && !top.has("collective") ? "colletive" : "collective";
  out.collective = tranship::word_of(top.at(collective), collective);
  read_settings(top, out);
  out.double_scratch = out.double_scratch || out.protocol == "LL";
  read_ranks<OldRankReader>(top, out);
  return out;
}

}  // namespace tranship::plan_words
