#include "tranship/program/collective.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>

namespace tranship {
namespace {

const RankProgram& of(const Program& program, Rank rank) {
  return program.ranks[static_cast<std::size_t>(rank)];
}
Index chunks_of(const Program& program, Rank rank, BufferKind buffer) {
  return of(program, rank).chunks[static_cast<std::size_t>(buffer)];
}

constexpr int shared_memory = 0, scratch_memory = 2;

}  // namespace

BufferPlace place_of(const Program& program, Rank rank, BufferKind buffer) {
  if (buffer == BufferKind::scratch) return {scratch_memory, 0};
  if (!program.in_place) return {static_cast<int>(buffer), 0};
  const Index input = chunks_of(program, rank, BufferKind::input),
              output = chunks_of(program, rank, BufferKind::output);
  Index first = 0;
  if (program.collective == "allgather" && buffer == BufferKind::input && output >= input * (rank + 1))
    first = rank * input;
  if (program.collective == "reducescatter" && buffer == BufferKind::output && input >= output * (rank + 1))
    first = rank * output;
  return {shared_memory, first};
}

Index input_chunks_max(const Program& program) {
  Index chunks = 0;
  for (const RankProgram& rank : program.ranks)
    chunks = std::max(chunks, rank.chunks[static_cast<std::size_t>(BufferKind::input)]);
  return chunks;
}

Index memory_chunks(const Program& program, Rank rank, int memory) {
  Index chunks = 0;
  for (const BufferKind buffer : {BufferKind::input, BufferKind::output, BufferKind::scratch})
    if (const BufferPlace place = place_of(program, rank, buffer); place.memory == memory)
      chunks = std::max(chunks, place.first_chunk + chunks_of(program, rank, buffer));
  return chunks;
}

CollectiveMeaning::CollectiveMeaning(const Program& program) : size_(static_cast<Rank>(program.ranks.size())) {
  static constexpr std::pair<const char*, Kind> names[] = {
      {"allreduce", Kind::allreduce}, {"allgather", Kind::allgather}, {"reducescatter", Kind::reducescatter},
      {"alltoall", Kind::alltoall},   {"sendrecv", Kind::sendrecv},   {"broadcast", Kind::broadcast},
      {"reduce", Kind::reduce}};
  for (const auto& [name, kind] : names)
    if (program.collective == name) kind_ = kind;
  if (kind_ == Kind::unknown) return;

  input_chunks_ = chunks_of(program, 0, BufferKind::input);
  for (Rank rank = 0; rank < size_; ++rank) {
    const Index input = chunks_of(program, rank, BufferKind::input);
    Index output = chunks_of(program, rank, BufferKind::output);
    if (input != input_chunks_)
      throw_error(ErrorCode::bad_file, "the input of rank {} has {}, that of rank 0 has {}", rank,
                  amount(input, "chunk"), input_chunks_);
    // Older plans give no size for an output that is the input.
    if (program.in_place && output == 0 && kind_ != Kind::reducescatter) output = input;
    Index wanted = input;
    if (kind_ == Kind::allgather) wanted = input * size_;
    if (kind_ == Kind::reducescatter) wanted = input / size_;
    const bool divides = (kind_ != Kind::reducescatter && kind_ != Kind::alltoall) || input % size_ == 0;
    if (output != wanted || !divides)
      throw_error(ErrorCode::bad_file, "{} of {} with {} of input has {} of output, not {} (rank {})",
                  with_article(program.collective), counted(size_, "rank"), counted(input, "chunk"),
                  divides ? counted(wanted, "chunk") : std::string("as many chunks"), output, rank);
    promised_.push_back(wanted);
  }
}

Index CollectiveMeaning::promised_chunks(Rank rank) const {
  return kind_ == Kind::unknown ? 0 : promised_[static_cast<std::size_t>(rank)];
}

InputRun CollectiveMeaning::inputs_of(Rank rank, Index chunk, Rank source) const {
  const Index left = promised_chunks(rank) - chunk;
  const auto slice = [&](Index chunks, Index first) -> InputRun {
    const Index of = chunk / chunks, within = chunk % chunks;
    return {.rank = static_cast<Rank>(of), .first = first + within, .count = std::min(left, chunks - within)};
  };
  switch (kind_) {
    case Kind::unknown:
      return {};
    case Kind::allreduce:
    case Kind::reduce:
      return {.first = chunk, .count = left, .combines_all = true};
    case Kind::reducescatter:
      return {.first = rank * (input_chunks_ / size_) + chunk, .count = left, .combines_all = true};
    case Kind::allgather:
      return slice(input_chunks_, 0);
    case Kind::alltoall:
      return slice(input_chunks_ / size_, rank * (input_chunks_ / size_));
    case Kind::sendrecv:
    case Kind::broadcast:
      return {.rank = source, .first = chunk, .count = left};
  }
  return {};
}

Index input_parts(const Program& program) {
  if (!CollectiveMeaning(program).is_known()) return std::max<Index>(1, input_chunks_max(program));
  const bool cuts_input = program.collective == "alltoall" || program.collective == "reducescatter";
  return cuts_input ? static_cast<Index>(program.ranks.size()) : 1;
}

Index input_elements(const Program& program, Index bytes, Index element_bytes) {
  const Index parts = input_parts(program);
  return std::max<Index>(1, bytes / element_bytes / parts) * parts;
}

void require_message(const Program& program, Index input_bytes) {
  const auto ranks = static_cast<Index>(program.ranks.size());
  const bool counts_output = program.collective == "allgather";
  const auto bytes = static_cast<std::uint64_t>(counts_output ? checked_multiply(input_bytes, ranks) : input_bytes);
  if (bytes < program.message_bytes_min || bytes > program.message_bytes_max)
    throw_error(ErrorCode::invalid_use, "the plan \"{}\" is for messages of {} to {}, not {}{}",
                printable(program.name, name_chars_max), program.message_bytes_min,
                amount(program.message_bytes_max, "byte"), bytes,
                counts_output ? fmt::format(": of an allgather, a message is the output of a rank, here {} of {}",
                                            counted(ranks, "input"), amount(input_bytes, "byte"))
                              : "");
}

}  // namespace tranship
