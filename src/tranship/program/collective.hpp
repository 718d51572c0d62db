// Private: What a program of a named collective promises: for every chunk of every output, the chunks of inputs that it
// combines.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tranship/program/program.hpp>

namespace tranship {

/// Chunks of the input of one rank, or those of all ranks, combined.
struct InputRun {
  Rank rank = 0;
  Index first = 0, count = 0;
  bool combines_all = false;
};

/// Where a buffer of a rank lies: buffers of a program in place share memory.
struct BufferPlace {
  int memory = 0;  ///< of the rank; those of input and output are equal when they overlap
  Index first_chunk = 0;
};
/// In place, the input of an allgather is slice r of the output, the output of a reducescatter is slice r of the input,
/// and otherwise input and output begin at the same place.
BufferPlace place_of(const Program& program, Rank rank, BufferKind buffer);
/// Chunks of the largest input of any rank.
Index input_chunks_max(const Program& program);
/// Chunks in one memory of a rank.
Index memory_chunks(const Program& program, Rank rank, int memory);

class CollectiveMeaning {
 public:
  /// What `program.collective` promises, or why nothing is known of it: `unknown` then says so. Throws `bad_file` where
  /// the numbers of chunks do not fit the collective.
  explicit CollectiveMeaning(const Program& program);

  bool is_known() const noexcept { return kind_ != Kind::unknown; }

  /// How many chunks of a rank's output are promised, and where they begin in the output. Zero for ranks that receive
  /// none.
  Index promised_chunks(Rank rank) const;
  /// Programs of which the sender or the root is free: what output `rank` holds decides, once, from its first chunk.
  bool chooses_source() const noexcept { return kind_ == Kind::sendrecv || kind_ == Kind::broadcast; }
  /// Of these, programs in which it is the same for all ranks. Else it is another rank, if there is one.
  bool has_one_source() const noexcept { return kind_ == Kind::broadcast; }
  /// What chunk `chunk` of the output of `rank` is, and how many chunks from there on continue it. `source`, for
  /// programs that choose it: whose input it is.
  InputRun inputs_of(Rank rank, Index chunk, Rank source = 0) const;
  /// Of a reduce: one rank at least holds the result. Of all other collectives, all do.
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

/// Into how many equal parts of whole elements the largest input of a rank is cut: those that the collective sends to
/// different ranks; of programs that promise nothing, its chunks.
Index input_parts(const Program& program);

/// Elements of an input of up to so many bytes, as many in each of these parts, but at least one in each.
Index input_elements(const Program& program, Index bytes, Index element_bytes);

/// Throws `invalid_use` for a message that is shorter or longer than those of the plan, whose bytes are those of the
/// input, and of an allgather those of the output.
void require_message(const Program& program, Index input_bytes);

}  // namespace tranship
