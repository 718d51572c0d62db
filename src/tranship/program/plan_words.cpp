#include "tranship/program/plan_words.hpp"

#include <algorithm>
#include <limits>

#include <tranship/base/fail.hpp>
#include <tranship/program/step_shape.hpp>

namespace tranship::plan_words {
namespace {

[[noreturn]] void fail_word(std::string_view where, const std::string& word, std::string_view expected) {
  throw_error(ErrorCode::bad_text, "{}: {} is not {}", where, json_in_message(word), expected);
}

/// The keys of all versions.
constexpr std::string_view known_keys[] = {
    "name", "collective", "colletive", "protocol", "inplace", "reuse_resources", "use_double_scratch_buffer",
    "num_threads_per_block", "buffer_alignment", "min_message_size", "max_message_size", "gpus", "id", "input_chunks",
    "output_chunks", "scratch_chunks", "channels", "remote_buffers", "semaphores", "threadblocks", "channel_type",
    "connected_to", "buffer_type", "buff", "rank_groups", "size", "ranks", "rank", "type", "access_channel_types",
    "init_value", "ops", "channel_ids", "remote_buffer_refs", "access_channel_type", "remote_buffer_ids", "src_buff",
    "dst_buff", "index", "buffer_id", "switch_channel_id", "tbg_info", "tb_id", "tbg_size", "reduce_op", "barrier_id",
    "num_threadblocks", "semaphore_ids", "iter_context", "unit_size", "num_chunks", "buffer_offset", "src_chunk",
    "dst_chunk",
    // Keys of releases up to 0.7.
    "inputChunks", "outputChunks", "scratchChunks", "chunkGroups", "srcbuff", "dstbuff", "connectedTo", "rankGroups",
    "src", "dst", "ctype", "cids", "i_buff", "o_buff", "i_cids", "o_cids", "srcs", "dsts", "off", "srcoff", "dstoff",
    "cnt", "deps", "tb", "step", "nthread_blocks"};

}  // namespace

void keep_others(const JsonObject& object, std::vector<UnknownKey>& out) {
  object.for_each_other([&](const std::string& key, const Json& value) {
    if (std::find(std::begin(known_keys), std::end(known_keys), key) != std::end(known_keys))
      throw_error(ErrorCode::bad_text, "{} has no meaning here", object.path(key));
    out.push_back({.where = object.where(), .key = key, .value = value.dump()});
  });
}

void require_id(JsonObject& object, const char* what, Index place) {
  if (const Index id = index_of(object.at("id"), object.path("id")); id != place)
    throw_error(ErrorCode::bad_file, "{}: found {} {} at place {}", object.path("id"), what, id, place);
}

void read_settings(JsonObject& top, Program& out) {
  out.protocol = tranship::word_of(top.at("protocol"), "protocol");
  out.in_place = flag_of(top.at("inplace"), "inplace");
  if (const Json* const value = top.find("num_threads_per_block"))
    out.threads_per_block = index_of(*value, "num_threads_per_block");
  if (const Json* const value = top.find("use_double_scratch_buffer"))
    out.double_scratch = flag_of(*value, "use_double_scratch_buffer");
  if (const Json* const value = top.find("min_message_size"))
    out.message_bytes_min = bytes_of(*value, "min_message_size");
  if (const Json* const value = top.find("max_message_size"))
    out.message_bytes_max = bytes_of(*value, "max_message_size");
}

char letter_of(BufferKind kind) noexcept {
  return name_of(kind)[0];
}

BufferKind buffer_of(const Json& value, std::string_view where) {
  const std::string& word = tranship::word_of(value, where);
  for (const BufferKind kind : {BufferKind::input, BufferKind::output, BufferKind::scratch})
    if (word.size() == 1 && word[0] == letter_of(kind)) return kind;
  fail_word(where, word, "a buffer; buffers are i, o and s");
}

ChannelKind channel_of(const Json& value, std::string_view where) {
  const std::string& word = tranship::word_of(value, where);
  for (const ChannelKind kind : {ChannelKind::memory, ChannelKind::port, ChannelKind::switched})
    if (word == name_of(kind)) return kind;
  if (word == "sm") return ChannelKind::memory;
  if (word == "proxy") return ChannelKind::port;
  if (word == "nvls") return ChannelKind::switched;
  fail_word(where, word, "a kind of channel; kinds are memory, port and switch");
}

const char* word_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return "sum";
    case Reduction::product:
      return "prod";
    case Reduction::minimum:
      return "min";
    case Reduction::maximum:
      return "max";
    default:
      throw_error(ErrorCode::unsupported, "a plan file has no word for the reduction {}", name_of(reduction));
  }
}

Reduction reduction_of(const Json& value, std::string_view where) {
  const std::string& word = tranship::word_of(value, where);
  for (const Reduction reduction : {Reduction::sum, Reduction::product, Reduction::minimum, Reduction::maximum})
    if (word == word_of(reduction)) return reduction;
  fail_word(where, word, "a reduction; reductions are sum, prod, min and max");
}

std::int32_t number_of(const Json& value, std::string_view where) {
  const Index number = index_of(value, where);
  if (number < 0 || number > std::numeric_limits<std::int32_t>::max())
    throw_error(ErrorCode::bad_file, "{}: {} is not between 0 and {}", where, number,
                std::numeric_limits<std::int32_t>::max());
  return static_cast<std::int32_t>(number);
}

std::vector<std::int32_t> numbers_of(const Json& value, std::string_view where) {
  std::vector<std::int32_t> out;
  for (const Json& item : list_of(value, where)) out.push_back(number_of(item, path(where, out.size())));
  return out;
}

const std::vector<Json>& list_of(const Json& value, std::string_view where) {
  if (!value.is_array())
    throw_error(ErrorCode::bad_text, "{}: expected a list, found {}", where, name_of(value.type()));
  return value.items();
}

std::uint64_t bytes_of(const Json& value, std::string_view where) {
  if (!value.is_integer()) throw_error(ErrorCode::bad_text, "{}: expected a whole number", where);
  try {
    return value.as_unsigned();
  } catch (const Error&) {
    throw_error(ErrorCode::bad_file, "{}: a number of bytes is not negative", where);
  }
}

std::string path(std::string_view list, std::size_t i) {
  return fmt::format("{}[{}]", list, i);
}

std::optional<ChannelKind> only_channel_of(std::string_view word) {
  std::optional<ChannelKind> out;
  for (int i = 0; i <= static_cast<int>(StepKind::pipeline); ++i) {
    const StepShape& shape = shape_of(static_cast<StepKind>(i));
    if (shape.word != word) continue;
    for (const ChannelKind kind : {ChannelKind::memory, ChannelKind::port, ChannelKind::switched}) {
      if (!shape.takes(kind)) continue;
      if (out && *out != kind) return std::nullopt;
      out = kind;
    }
  }
  return out;
}

StepKind step_of(const std::string& word, bool has_channel, ChannelKind channel, std::string_view where) {
  bool is_known = false;
  for (int i = 0; i <= static_cast<int>(StepKind::pipeline); ++i) {
    const auto kind = static_cast<StepKind>(i);
    const StepShape& shape = shape_of(kind);
    if (shape.word != word) continue;
    is_known = true;
    if (shape.channel == StepChannel::none || (has_channel && shape.takes(channel))) return kind;
  }
  if (!is_known) fail_word(where, word, "a step that is known here");
  if (!has_channel) throw_error(ErrorCode::bad_file, "{}: \"{}\" without a channel_type", where, word);
  throw_error(ErrorCode::bad_file, "{}: \"{}\" cannot use a {} channel", where, word, name_of(channel));
}

}  // namespace tranship::plan_words
