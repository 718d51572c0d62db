// Private: the words of plan files for buffers, channels and reductions, in both directions, and the parts that the
// readers of old and present plans share.
#pragma once

#include <string_view>
#include <vector>

#include <tranship/layout/json_value.hpp>
#include <tranship/program/program.hpp>

namespace tranship::plan_words {

char letter_of(BufferKind kind) noexcept;
BufferKind buffer_of(const Json& value, std::string_view where);
/// Also takes "sm", "proxy" and "nvls", the names in older versions.
ChannelKind channel_of(const Json& value, std::string_view where);
/// Returns "sum", "prod", "min" or "max". Throws `unsupported` for other reductions.
const char* word_of(Reduction reduction);
Reduction reduction_of(const Json& value, std::string_view where);

std::int32_t number_of(const Json& value, std::string_view where);
std::vector<std::int32_t> numbers_of(const Json& value, std::string_view where);
std::uint64_t bytes_of(const Json& value, std::string_view where);
const std::vector<Json>& list_of(const Json& value, std::string_view where);
std::string path(std::string_view list, std::size_t i);

/// Returns the kind of step that a word names; some words name a kind for each kind of channel.
StepKind step_of(const std::string& word, bool has_channel, ChannelKind channel, std::string_view where);

/// Returns the kind of channel that the steps of a word use; empty where there are several, or none.
std::optional<ChannelKind> only_channel_of(std::string_view word);

/// Adds to `out` the members that the reader has not asked for. Throws `bad_text` for keys that have a meaning
/// elsewhere.
void keep_others(const JsonObject& object, std::vector<UnknownKey>& out);

/// Calls `f(JsonObject&)` for the objects of a list, and keeps the members that f has not asked for.
template <class F>
void for_each_object(const Json& list, const std::string& where, std::vector<UnknownKey>& unknown, F&& f) {
  std::size_t i = 0;
  for (const Json& value : list_of(list, where)) {
    JsonObject object(value, path(where, i++));
    f(object);
    keep_others(object, unknown);
  }
}

/// Throws `bad_file` unless the member "id" of `object` is `place`, its number in its list. `what` names the object in
/// the message: "rank", "block".
void require_id(JsonObject& object, const char* what, Index place);

/// Reads the members that both formats spell alike: protocol, in place, threads, double scratch, message sizes.
void read_settings(JsonObject& top, Program& out);

/// Reads the list "gpus" with one `Reader` per rank, and keeps the members of `top` that were not asked for.
template <class Reader>
void read_ranks(JsonObject& top, Program& out) {
  for (const Json& rank : list_of(top.at("gpus"), "gpus")) {
    const auto number = static_cast<Rank>(out.ranks.size());
    out.ranks.push_back(Reader(rank, path("gpus", out.ranks.size()), number, out.unknown_keys).read());
  }
  keep_others(top, out.unknown_keys);
}

/// Reads a plan of a release up to 0.7.
Program read_old_program(const Json& document);

}  // namespace tranship::plan_words
