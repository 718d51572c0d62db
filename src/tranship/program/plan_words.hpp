// Private: the words of plan files for buffers, channels and reductions, both ways, ways to read values, and what the
// readers of both forms of plans share.
#pragma once

#include <string_view>
#include <vector>

#include <tranship/layout/json_value.hpp>
#include <tranship/program/program.hpp>

namespace tranship::plan_words {

char letter_of(BufferKind kind) noexcept;
BufferKind buffer_of(const Json& value, std::string_view where);
/// Older versions call channels "sm", "proxy" and "nvls".
ChannelKind channel_of(const Json& value, std::string_view where);
/// "sum", "prod", "min" or "max".
const char* word_of(Reduction reduction);
Reduction reduction_of(const Json& value, std::string_view where);

std::int32_t number_of(const Json& value, std::string_view where);
std::vector<std::int32_t> numbers_of(const Json& value, std::string_view where);
std::uint64_t bytes_of(const Json& value, std::string_view where);
const std::vector<Json>& list_of(const Json& value, std::string_view where);
std::string path(std::string_view list, std::size_t i);

/// The kinds of steps that a word names, one for each kind of channel that makes a difference.
StepKind step_of(const std::string& word, bool has_channel, ChannelKind channel, std::string_view where);

/// The kind of channel that a word of a step goes by; none where it may be several, or goes by none.
std::optional<ChannelKind> only_channel_of(std::string_view word);

/// Adds to `out` the members that nothing has asked for. Throws `bad_text` for those that have a meaning elsewhere.
void keep_others(const JsonObject& object, std::vector<UnknownKey>& out);

/// Calls `f(JsonObject&)` for the objects of a list, and keeps what it has not asked for.
template <class F>
void for_each_object(const Json& list, const std::string& where, std::vector<UnknownKey>& unknown, F&& f) {
  std::size_t i = 0;
  for (const Json& value : list_of(list, where)) {
    JsonObject object(value, path(where, i++));
    f(object);
    keep_others(object, unknown);
  }
}

/// Throws `bad_file` unless the member "id" of `object` is `place`, its number in its list. `what` names the thing:
/// "rank", "block".
void require_id(JsonObject& object, const char* what, Index place);

/// The members of a plan that both forms spell alike: protocol, in place, threads, double scratch, and the sizes of
/// messages.
void read_settings(JsonObject& top, Program& out);

/// Reads the list "gpus" with one `Reader` for each rank, and keeps the members of `top` that nothing has asked for.
template <class Reader>
void read_ranks(JsonObject& top, Program& out) {
  for (const Json& rank : list_of(top.at("gpus"), "gpus")) {
    const auto number = static_cast<Rank>(out.ranks.size());
    out.ranks.push_back(Reader(rank, path("gpus", out.ranks.size()), number, out.unknown_keys).read());
  }
  keep_others(top, out.unknown_keys);
}

/// The program of a document of releases up to 0.7.
Program read_old_program(const Json& document);

}  // namespace tranship::plan_words
