#include "tranship/program/plan_file.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/program/plan_words.hpp>
#include <tranship/program/step_shape.hpp>

namespace tranship {
namespace {

using namespace plan_words;

// --- Reading --------------------------------------------------------------------------------------------------------

/// Returns the id that a number of a block's list stands for.
std::int32_t listed(const std::vector<std::int32_t>& list, std::int32_t number, const char* what,
                    std::string_view where) {
  if (static_cast<std::size_t>(number) >= list.size())
    throw_error(ErrorCode::bad_file, "{}: {} {} does not exist: the block has {}", where, what, number, list.size());
  return list[static_cast<std::size_t>(number)];
}

class RankReader {
 public:
  /// Adds unknown keys to `unknown`.
  RankReader(const Json& value, std::string where, Rank rank, std::vector<UnknownKey>& unknown)
      : object_(value, std::move(where)), rank_(rank), unknown_(unknown) {}

  RankProgram read() {
    require_id(object_, "rank", rank_);
    const char* const counts[buffer_kinds] = {"input_chunks", "output_chunks", "scratch_chunks"};
    for (int kind = 0; kind < buffer_kinds; ++kind)
      out_.chunks[kind] = index_of(object_.at(counts[kind]), object_.path(counts[kind]));
    read_channels();
    if (const Json* const list = object_.find("remote_buffers"))
      read_remote_buffers(*list, object_.path("remote_buffers"));
    if (const Json* const list = object_.find("semaphores")) read_semaphores(*list, object_.path("semaphores"));
    const std::string where = object_.path("threadblocks");
    for (const Json& block : list_of(object_.at("threadblocks"), where))
      out_.blocks.push_back(read_block(block, path(where, out_.blocks.size())));
    keep_others(object_, unknown_);
    return std::move(out_);
  }

 private:
  void read_channels() {
    for_each_object(object_.at("channels"), object_.path("channels"), unknown_, [&](JsonObject& channels) {
      const ChannelKind kind = channel_of(channels.at("channel_type"), channels.path("channel_type"));
      if (kind == ChannelKind::switched) {
        read_switches(channels);
      } else {
        auto& peers = out_.peers[static_cast<std::size_t>(kind)];
        if (!peers.empty())
          throw_error(ErrorCode::bad_file, "{}: {} channels are listed twice", channels.where(), name_of(kind));
        peers = numbers_of(channels.at("connected_to"), channels.path("connected_to"));
      }
    });
  }

  void read_switches(JsonObject& channels) {
    const char* const key = channels.has("buffer_type") ? "buffer_type" : "buff";
    const BufferKind buffer = buffer_of(channels.at(key), channels.path(key));
    for_each_object(channels.at("rank_groups"), channels.path("rank_groups"), unknown_, [&](JsonObject& group) {
      SwitchGroup out{.buffer = buffer, .ranks = numbers_of(group.at("ranks"), group.path("ranks"))};
      if (const Index size = index_of(group.at("size"), group.path("size"));
          size != static_cast<Index>(out.ranks.size()))
        throw_error(ErrorCode::bad_file, "{}: found {} in a group of {}", group.path("size"),
                    amount(out.ranks.size(), "rank"), size);
      out_.switches.push_back(std::move(out));
    });
  }

  void read_remote_buffers(const Json& values, const std::string& list) {
    for_each_object(values, list, unknown_, [&](JsonObject& remote) {
      RemoteBuffer out{.rank = number_of(remote.at("rank"), remote.path("rank")),
                       .buffer = buffer_of(remote.at("type"), remote.path("type"))};
      const std::string types = remote.path("access_channel_types");
      for (const Json& type : list_of(remote.at("access_channel_types"), types))
        out.access.push_back(channel_of(type, path(types, out.access.size())));
      out_.remote_buffers.push_back(std::move(out));
    });
  }

  void read_semaphores(const Json& values, const std::string& list) {
    for_each_object(values, list, unknown_, [&](JsonObject& semaphore) {
      out_.semaphores.push_back(index_of(semaphore.at("init_value"), semaphore.path("init_value")));
    });
  }

  ThreadBlock read_block(const Json& value, const std::string& where) {
    JsonObject block(value, where);
    require_id(block, "block", static_cast<Index>(out_.blocks.size()));
    block_ = {};
    read_lists(block, "channels", "channel_type", "channel_ids", block_.channels);
    if (block.has("remote_buffer_refs"))
      read_lists(block, "remote_buffer_refs", "access_channel_type", "remote_buffer_ids", block_.remote_buffers);
    block_.steps = read_steps(block.at("ops"), block.path("ops"));
    keep_others(block, unknown_);
    return std::move(block_);
  }

  void read_lists(JsonObject& block, const char* key, const char* type_key, const char* ids_key,
                  std::vector<std::int32_t> (&lists)[channel_kinds]) {
    for_each_object(block.at(key), block.path(key), unknown_, [&](JsonObject& of_kind) {
      const ChannelKind kind = channel_of(of_kind.at(type_key), of_kind.path(type_key));
      auto& ids = lists[static_cast<std::size_t>(kind)];
      if (!ids.empty())
        throw_error(ErrorCode::bad_file, "{}: {} channels are listed twice", of_kind.path(type_key), name_of(kind));
      ids = numbers_of(of_kind.at(ids_key), of_kind.path(ids_key));
      // The version before the present one repeats the buffer of the rank's channels here.
      if (kind == ChannelKind::switched && of_kind.has("buff")) buffer_of(of_kind.at("buff"), of_kind.path("buff"));
    });
  }

  std::vector<Step> read_steps(const Json& values, const std::string& list) {
    std::vector<Step> out;
    for (const Json& value : list_of(values, list)) out.push_back(read_step(value, path(list, out.size())));
    return out;
  }

  Step read_step(const Json& value, const std::string& where) {
    JsonObject op(value, where);
    const std::string& word = tranship::word_of(op.at("name"), op.path("name"));
    const Json* const type = op.find("channel_type");
    Step step;
    // Earlier versions omit the kind where only one is possible.
    const std::optional<ChannelKind> only = type ? std::nullopt : only_channel_of(word);
    if (type) step.channel = channel_of(*type, op.path("channel_type"));
    if (only) step.channel = *only;
    step.kind = step_of(word, type || only, step.channel, op.path("name"));
    const StepShape& shape = shape_of(step.kind);

    if (const Json* const ids = op.find("channel_ids")) {
      if (!type) throw_error(ErrorCode::bad_file, "{}: found channels without a channel_type", op.path("channel_ids"));
      for (const std::int32_t id : numbers_of(*ids, op.path("channel_ids"))) {
        const std::int32_t channel =
            listed(block_.channels[static_cast<std::size_t>(step.channel)], id, "channel", op.path("channel_ids"));
        if (shape.channel != StepChannel::switched) step.ids.push_back(channel);  // operands name switch channels
      }
    }
    if (const Json* const ids = op.find("semaphore_ids")) step.ids = numbers_of(*ids, op.path("semaphore_ids"));
    if (step.kind == StepKind::barrier) {
      step.ids = {number_of(op.at("barrier_id"), op.path("barrier_id"))};
      step.participants = number_of(op.at("num_threadblocks"), op.path("num_threadblocks"));
    }
    if ((step.kind == StepKind::switch_reduce || step.kind == StepKind::switch_broadcast) && op.has("buffer_offset"))
      read_loose_switch(op, step);
    else if (shape.moves())
      read_operands(op, step, shape);
    if (const Json* const reduction = op.find("reduce_op"))
      step.reduction = reduction_of(*reduction, op.path("reduce_op"));
    else
      step.names_reduction = false;
    if (const Json* const group = op.find("tbg_info")) {
      JsonObject info(*group, op.path("tbg_info"));
      step.share = number_of(info.at("tb_id"), info.path("tb_id"));
      step.shares = number_of(info.at("tbg_size"), info.path("tbg_size"));
      keep_others(info, unknown_);
    }
    if (step.kind == StepKind::pipeline) {
      Pipeline pipeline;
      JsonObject loop(op.at("iter_context"), op.path("iter_context"));
      pipeline.unit_bytes = index_of(loop.at("unit_size"), loop.path("unit_size"));
      pipeline.chunks = index_of(loop.at("num_chunks"), loop.path("num_chunks"));
      keep_others(loop, unknown_);
      if (where.find(".ops[") != where.rfind(".ops["))
        throw_error(ErrorCode::bad_file, "{}: pipelines do not nest", where);
      pipeline.steps = read_steps(op.at("ops"), op.path("ops"));
      step.pipeline = std::make_shared<const Pipeline>(std::move(pipeline));
    }
    keep_others(op, unknown_);
    return step;
  }

  void read_operands(JsonObject& op, Step& step, const StepShape& shape) {
    for (const char* const key : {"src_buff", "dst_buff"}) {
      const std::string list = op.path(key);
      const std::string_view letters = key[0] == 's' ? shape.sources : shape.targets;
      std::size_t i = 0;
      for (const Json& value : list_of(op.at(key), list)) {
        const std::string where = path(list, i);
        if (letters.empty()) throw_error(ErrorCode::bad_file, "{}: the step takes no operand here", where);
        step.operands.push_back(read_operand(value, where, shape_of_operand(letters, i), step));
        ++i;
      }
      if (key[0] == 's') step.sources = static_cast<std::int32_t>(i);
    }
  }

  Operand read_operand(const Json& value, const std::string& where, OperandShape shape, const Step& step) {
    JsonObject object(value, where);
    Operand out{.first = index_of(object.at("index"), object.path("index")),
                .count = index_of(object.at("size"), object.path("size"))};
    switch (shape.where) {
      case Where::here:
        out.buffer = buffer_of(object.at("type"), object.path("type"));
        if (const Json* const rank = object.find("rank"))
          if (const Index named = index_of(*rank, object.path("rank")); named != rank_)
            throw_error(ErrorCode::bad_file, "{}: found rank {}, expected rank {}", object.path("rank"), named, rank_);
        break;
      case Where::peer: {
        const std::string at = object.path("buffer_id");
        out.via = listed(block_.remote_buffers[static_cast<std::size_t>(step.channel)],
                         number_of(object.at("buffer_id"), at), "remote buffer", at);
        out.buffer = listed_remote(out.via, at).buffer;
        break;
      }
      case Where::group: {
        const std::string at = object.path("switch_channel_id");
        out = group_operand(number_of(object.at("switch_channel_id"), at), out.first, out.count, at);
        break;
      }
    }
    keep_others(object, unknown_);
    return out;
  }

  const RemoteBuffer& listed_remote(std::int32_t id, std::string_view where) const {
    if (static_cast<std::size_t>(id) >= out_.remote_buffers.size())
      throw_error(ErrorCode::bad_file, "{}: remote buffer {} does not exist: the rank has {}", where, id,
                  out_.remote_buffers.size());
    return out_.remote_buffers[static_cast<std::size_t>(id)];
  }

  Operand group_operand(std::int32_t number, Index first, Index count, std::string_view where) const {
    const std::int32_t id =
        listed(block_.channels[static_cast<std::size_t>(ChannelKind::switched)], number, "switch channel", where);
    if (static_cast<std::size_t>(id) >= out_.switches.size())
      throw_error(ErrorCode::bad_file, "{}: switch channel {} does not exist: the rank has {}", where, id,
                  out_.switches.size());
    return {.buffer = out_.switches[static_cast<std::size_t>(id)].buffer, .via = id, .first = first, .count = count};
  }

  /// Reads glre, and gstore of earlier versions, which have no src_buff and dst_buff.
  void read_loose_switch(JsonObject& op, Step& step) {
    const Json* const ids = op.find("channel_ids");
    const auto numbers = ids ? numbers_of(*ids, op.path("channel_ids")) : std::vector<std::int32_t>{0};
    if (numbers.size() != 1)
      throw_error(ErrorCode::bad_file, "{}: found {}, expected 1", op.path("channel_ids"),
                  amount(numbers.size(), "channel"));
    const Index size = index_of(op.at("size"), op.path("size"));
    const Operand there = group_operand(numbers[0], index_of(op.at("buffer_offset"), op.path("buffer_offset")), size,
                                        op.path("channel_ids"));
    if (const BufferKind buffer = buffer_of(op.at("buffer_type"), op.path("buffer_type")); buffer != there.buffer)
      throw_error(ErrorCode::bad_file, "{}: found {}, but the switch channel is over {}", op.path("buffer_type"),
                  name_of(buffer), name_of(there.buffer));
    const bool reduces = step.kind == StepKind::switch_reduce;
    const char* const key = reduces ? "dst_chunk" : "src_chunk";
    const Operand here =
        read_operand(op.at(key), op.path(key), {.format = OperandFormat::plain, .where = Where::here}, step);
    step.sources = 1;
    step.operands = reduces ? std::vector{there, here} : std::vector{here, there};
  }

  JsonObject object_;
  Rank rank_;
  std::vector<UnknownKey>& unknown_;
  RankProgram out_;
  ThreadBlock block_;
};

Program read_present_program(const Json& document) {
  JsonObject top(document, "");
  Program out;
  out.name = tranship::word_of(top.at("name"), "name");
  out.collective = tranship::word_of(top.at("collective"), "collective");
  read_settings(top, out);
  if (const Json* const value = top.find("reuse_resources")) out.reuse_resources = flag_of(*value, "reuse_resources");
  if (const Json* const value = top.find("buffer_alignment"))
    out.buffer_alignment = index_of(*value, "buffer_alignment");
  read_ranks<RankReader>(top, out);
  return out;
}

bool is_old(const Json& document) {
  const Json* const gpus = document.find("gpus");
  return gpus && gpus->is_array() && gpus->size() > 0 && (*gpus)[0].contains("inputChunks");
}

// --- Writing --------------------------------------------------------------------------------------------------------

class RankWriter {
 public:
  RankWriter(const RankProgram& program, Rank rank) : program_(program), rank_(rank) {}

  Json write() {
    Json out = {{"id", rank_},
                {"input_chunks", program_.chunks[0]},
                {"output_chunks", program_.chunks[1]},
                {"scratch_chunks", program_.chunks[2]}};
    Json& blocks = out["threadblocks"] = Json::array();
    for (const ThreadBlock& block : program_.blocks) blocks.push_back(json_of(block, blocks.size()));
    out["channels"] = channels();
    Json& remotes = out["remote_buffers"] = Json::array();
    for (const RemoteBuffer& remote : program_.remote_buffers) {
      Json types = Json::array();
      for (const ChannelKind kind : remote.access) types.push_back(name_of(kind));
      remotes.push_back(
          {{"rank", remote.rank}, {"type", word_of_buffer(remote.buffer)}, {"access_channel_types", std::move(types)}});
    }
    Json& semaphores = out["semaphores"] = Json::array();
    for (const Index value : program_.semaphores) semaphores.push_back({{"init_value", value}});
    return out;
  }

 private:
  static std::string word_of_buffer(BufferKind kind) { return std::string(1, letter_of(kind)); }

  Json channels() const {
    Json out = Json::array();
    for (const ChannelKind kind : {ChannelKind::memory, ChannelKind::port})
      if (const auto& peers = program_.peers[static_cast<std::size_t>(kind)]; !peers.empty())
        out.push_back({{"channel_type", name_of(kind)}, {"connected_to", peers}});
    for (const SwitchGroup& group : program_.switches) {
      Json groups = Json::array();
      groups.push_back({{"size", group.ranks.size()}, {"ranks", group.ranks}});
      out.push_back({{"channel_type", name_of(ChannelKind::switched)},
                     {"buffer_type", word_of_buffer(group.buffer)},
                     {"rank_groups", std::move(groups)}});
    }
    return out;
  }

  Json json_of(const ThreadBlock& block, std::size_t id) {
    block_ = &block;
    Json out = {{"id", id}, {"ops", json_of(block.steps)}};
    out["channels"] = json_of_lists(block.channels, "channel_type", "channel_ids");
    out["remote_buffer_refs"] = json_of_lists(block.remote_buffers, "access_channel_type", "remote_buffer_ids");
    return out;
  }

  static Json json_of_lists(const std::vector<std::int32_t> (&lists)[channel_kinds], const char* type_key,
                            const char* ids_key) {
    Json out = Json::array();
    for (int kind = 0; kind < channel_kinds; ++kind)
      if (!lists[kind].empty())
        out.push_back({{type_key, name_of(static_cast<ChannelKind>(kind))}, {ids_key, lists[kind]}});
    return out;
  }

  Json json_of(const std::vector<Step>& steps) const {
    Json out = Json::array();
    for (const Step& step : steps) out.push_back(json_of(step));
    return out;
  }

  Json json_of(const Step& step) const {
    const StepShape& shape = shape_of(step.kind);
    Json out = {{"name", shape.word}};
    if (shape.moves()) {
      const auto sources = static_cast<std::size_t>(step.sources);
      out["src_buff"] = Json::array();
      out["dst_buff"] = Json::array();
      for (std::size_t i = 0; i < step.operands.size(); ++i) {
        const bool is_source = i < sources;
        const OperandShape what = is_source ? shape_of_source(shape, i) : shape_of_target(shape, i - sources);
        out[is_source ? "src_buff" : "dst_buff"].push_back(json_of(step.operands[i], what, shape, step.channel));
      }
    }
    if (step.kind == StepKind::acquire || step.kind == StepKind::release) {
      out["semaphore_ids"] = step.ids;
    } else if (step.kind == StepKind::barrier) {
      out["barrier_id"] = step.ids[0];
      out["num_threadblocks"] = step.participants;
    } else if (!step.ids.empty()) {
      Json ids = Json::array();
      for (const std::int32_t id : step.ids)
        ids.push_back(number_in(block_->channels[static_cast<std::size_t>(step.channel)], id));
      out["channel_ids"] = std::move(ids);
    }
    if (shape.channel != StepChannel::none) out["channel_type"] = name_of(step.channel);
    if (step.names_reduction && combines(shape)) out["reduce_op"] = plan_words::word_of(step.reduction);
    if (step.shares != 0) out["tbg_info"] = {{"tb_id", step.share}, {"tbg_size", step.shares}};
    if (step.pipeline) {
      out["iter_context"] = {{"unit_size", step.pipeline->unit_bytes}, {"num_chunks", step.pipeline->chunks}};
      out["ops"] = json_of(step.pipeline->steps);
    }
    return out;
  }

  /// Returns true when the step combines several values.
  static bool combines(const StepShape& shape) {
    return shape.pairing == Pairing::all && (shape.sources.size() > 1 || shape.sources == "S");
  }

  Json json_of(const Operand& operand, OperandShape what, const StepShape& shape, ChannelKind channel) const {
    Json out = Json::object();
    switch (what.where) {
      case Where::here:
        if (shape.channel == StepChannel::switched && shape.sources != "S") out["rank"] = rank_;
        out["type"] = word_of_buffer(operand.buffer);
        break;
      case Where::peer:
        out["buffer_id"] = number_in(block_->remote_buffers[static_cast<std::size_t>(channel)], operand.via);
        break;
      case Where::group:
        out["switch_channel_id"] =
            number_in(block_->channels[static_cast<std::size_t>(ChannelKind::switched)], operand.via);
        break;
    }
    out["index"] = operand.first;
    out["size"] = operand.count;
    return out;
  }

  static std::size_t number_in(const std::vector<std::int32_t>& list, std::int32_t id) {
    return static_cast<std::size_t>(std::find(list.begin(), list.end(), id) - list.begin());
  }

  const RankProgram& program_;
  Rank rank_;
  const ThreadBlock* block_ = nullptr;
};

/// Returns the object at a path such as "gpus[0].threadblocks[1]"; null when there is none.
Json* value_at(Json& document, std::string_view path) {
  Json* at = &document;
  while (!path.empty()) {
    const std::size_t end = path.find_first_of(".[", 1);
    std::string_view part = path.substr(0, end);
    path.remove_prefix(part.size());
    if (part.front() == '[') {
      std::size_t index = 0;
      const auto [last, error] = std::from_chars(part.data() + 1, part.data() + part.size(), index);
      if (error != std::errc() || *last != ']' || !at->is_array() || index >= at->size()) return nullptr;
      at = &(*at)[index];
    } else {
      if (part.front() == '.') part.remove_prefix(1);
      if (!at->is_object() || !at->contains(part)) return nullptr;
      at = &(*at)[part];
    }
  }
  return at->is_object() ? at : nullptr;
}

}  // namespace

Program read_program(std::string_view text) {
  if (text.size() > program_text_bytes_max)
    throw_error(ErrorCode::bad_file, "the plan has {}; at most {} are read", amount(text.size(), "byte"),
                program_text_bytes_max);
  const Json document = parse_json(text);
  Program program = is_old(document) ? read_old_program(document) : read_present_program(document);
  check_structure(program);
  return program;
}

std::string write_program(const Program& program) {
  check_structure(program);
  Json out = {{"name", program.name},
              {"collective", program.collective},
              {"protocol", program.protocol},
              {"inplace", program.in_place},
              {"reuse_resources", program.reuse_resources}};
  Json& ranks = out["gpus"] = Json::array();
  for (const RankProgram& rank : program.ranks)
    ranks.push_back(RankWriter(rank, static_cast<Rank>(ranks.size())).write());
  out["num_threads_per_block"] = program.threads_per_block;
  out["use_double_scratch_buffer"] = program.double_scratch;
  out["buffer_alignment"] = program.buffer_alignment;
  out["min_message_size"] = program.message_bytes_min;
  out["max_message_size"] = program.message_bytes_max;
  for (const UnknownKey& one : program.unknown_keys)
    if (Json* const object = value_at(out, one.where); object && !object->contains(one.key))
      object->add_member(one.key, parse_json(one.value));
  return out.dump() + '\n';
}

}  // namespace tranship
