#include "tranship/fabric/lanes/lost_wait.hpp"

#include <algorithm>
#include <string>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/seam/wait_note.hpp>

namespace tranship {
namespace {

/// Returns a text of a record, which a broken kernel may have overwritten.
template <std::size_t size>
std::string text_of(const char (&text)[size]) {
  return {text, std::find(text, text + size, '\0')};
}

}  // namespace

bool has_lost_wait(const WaitRecord& record) noexcept {
  return detail::load_word(&record.state) == WaitRecord::complete;
}

Error lost_wait(const WaitRecord& record) {
  const std::string call = text_of(record.call), file = text_of(record.file);
  WaitNote note(call.c_str(), record.raised_by, {file.c_str(), record.line});
  note.flag_rank = record.rank;
  note.flag_index = static_cast<std::int64_t>(record.offset_bytes);
  note.comparison = record.comparison;
  note.is_signed = record.is_signed;
  note.wanted = record.wanted;
  note.seen = record.seen;
  Error error =
      make_error(ErrorCode::timeout, "rank {} waited {:.3g} s in block {} of a kernel for {} (from {})", record.rank,
                 static_cast<double>(record.waited_ns) * 1e-9, record.block, to_string(note), short_name(note.where));
  error.rank = record.rank;
  error.peer = record.raised_by;
  return error;
}

}  // namespace tranship
