// Private: CollectiveMeaning, the promise of a named collective: for every chunk of every output, the input chunks that
// it combines.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tranship/program/program.hpp>

namespace tranship {

/// Consecutive chunks of the input of one rank, or of the inputs of all ranks combined.
struct InputRun {
  Rank rank = 0;
  Index first = 0, count = 0;
  bool combines_all = false;
};

/// The place of a buffer of a rank. Buffers of a program in place share a memory.
struct BufferPlace {
  int memory = 0;  ///< of the rank; input and output have the same one when they overlap
  Index first_chunk = 0;
};
/// Returns the place of a buffer. In place, the input of an allgather is slice r of the output, the output of a
/// reducescatter is slice r of the input, and otherwise input and output begin at the same place.
BufferPlace place_of(const Program& program, Rank rank, BufferKind buffer);
/// Number of chunks of the largest input of any rank.
Index input_chunks_max(const Program& program);
/// Number of chunks in one memory of a rank.
Index memory_chunks(const Program& program, Rank rank, int memory);

class CollectiveMeaning {
 public:
  /// Finds the promise of `program.collective`; is_known() is false for other names. Throws `bad_file` when the numbers
  /// of chunks do not fit the collective.
  explicit CollectiveMeaning(const Program& program);

  bool is_known() const noexcept { return kind_ != Kind::unknown; }

  /// Number of promised chunks of a rank's output, counted from its beginning; 0 for a collective that is not known.
  Index promised_chunks(Rank rank) const;
  /// Returns true when the program may choose the sender or the root; the first chunk of an output shows the choice.
  bool chooses_source() const noexcept { return kind_ == Kind::sendrecv || kind_ == Kind::broadcast; }
  /// When chooses_source(): returns true when the source is the same for all ranks. Otherwise the source differs from
  /// the receiver, unless there is only one rank.
  bool has_one_source() const noexcept { return kind_ == Kind::broadcast; }
  /// Returns the inputs of chunk `chunk` of the output of `rank`, with the number of chunks that continue in the same
  /// way. `source` is the rank whose input it is, for programs that choose one.
  InputRun inputs_of(Rank rank, Index chunk, Rank source = 0) const;
  /// Returns true when one rank with the result is enough (reduce); for other collectives all ranks must have theirs.
  bool one_rank_suffices() const noexcept { return kind_ == Kind::reduce; }

 private:
  enum class Kind : std::uint8_t {
    unknown,
    allreduce,
    allgather,
    reducescatter,
    alltoall,
    sendrecv,
    broadcast,
    reduce
  };

  Kind kind_ = Kind::unknown;
  Rank size_ = 0;
  std::vector<Index> promised_;
  Index input_chunks_ = 0;
};

/// Number of equal parts of whole elements into which the largest input of a rank is cut: the parts that the collective
/// sends to different ranks or, for a program that promises nothing, its chunks.
Index input_parts(const Program& program);

/// Number of elements of an input of at most `bytes` bytes, equal in all these parts and at least one in each.
Index input_elements(const Program& program, Index bytes, Index element_bytes);

/// Throws `invalid_use` for a message outside the plan's limits. The bytes of a message are those of the input, and for
/// an allgather those of the output.
void require_message(const Program& program, Index input_bytes);

}  // namespace tranship
