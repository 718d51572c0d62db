// Work: the task that a case sets its contestants, and the geometry that all of them share. Nothing here depends on
// tranship: the peers' programs include it, and it checks their results and ours.
//
// Arrays hold doubles. The value of a cell is its global row-major number, plus `field` times the number of cells, plus
// a salt that changes from operation to operation.
#pragma once

#include <cstdint>
#include <vector>

namespace contest {

enum class Task : std::int32_t {
  redistribution,  ///< from one distribution to another
  halo,            ///< every field's ghost cells, 26 neighbours, periodic
  stencil,         ///< halo of one field and a 7-point stencil over it
  coherence,       ///< one array of the first axis's extent, a multiple of 16, used in two memories by turns
  one_sided,       ///< transfers of rank 0 to and from the memory of rank 1, and signals
  collective,      ///< one operation of all ranks together
  stream,          ///< `repeats` frames of a redistribution: each is written, moved and read
};

/// The uses that one operation of a coherence work makes. A write gives every cell of its region a new value.
enum class Sequence : std::int32_t {
  write_and_read,  ///< the host writes, the device reads
  overwrite,       ///< the host writes, the device overwrites, the host reads
  write_a_part,    ///< the host writes a sixteenth, the device reads
  read_by_turns,
  add_on_both,   ///< the host writes, both add to all cells, the host reads
  write_halves,  ///< each writes a half, both read
};

/// The transfer that one operation of a one-sided work repeats `repeats` times.
enum class Transfer : std::int32_t {
  put,        ///< always to one place; one quiet at the end
  put_quiet,  ///< a quiet after each
  put_along,  ///< each to the place after the one before; one quiet at the end
  get,        ///< always from one place
  together,   ///< a put in which the other rank may help
  add,        ///< one quiet at the end
  fetch_add,
  message,  ///< there and back: the sender rewrites the bytes before, the receiver reads them after
  signal,   ///< there and back, without data
  barrier,
};

/// The operation of a collective work. `bytes` is the larger of a rank's input and output.
enum class Collective : std::int32_t { all_reduce, all_gather, reduce_scatter, all_to_all };

/// The order of the target's local memory: row-major, or with the two dimensions of a matrix exchanged.
enum class Order : std::int32_t { same, transposed };

/// Deals one dimension out to `parts` parts, in blocks of `block` cells round-robin; block 0 is one block a part.
struct Deal {
  std::int64_t parts = 1;
  std::int64_t block = 0;
};

struct Axis {
  std::int64_t extent = 1;
  Deal from;
  Deal to;  ///< of a halo: unused
};

constexpr int dims_max = 3;

struct Work {
  Task task = Task::redistribution;
  std::int32_t ranks = 1;
  std::int32_t dims = 2;
  Axis axes[dims_max];
  Order order = Order::same;
  std::int32_t fields = 1;  ///< of a halo
  std::int32_t width = 0;   ///< of a halo
  Sequence sequence = Sequence::write_and_read;
  Transfer transfer = Transfer::put;  ///< of a one-sided work
  std::int64_t bytes = 8;             ///< of each transfer, a multiple of 8
  Collective collective = Collective::all_reduce;
  std::int64_t repeats = 1;
};

enum class Side { from, to };

std::int64_t cell_count(const Work& work);
/// The coordinates of a rank in the row-major grid of one side.
std::vector<std::int64_t> coordinates_of(const Work& work, Side side, int rank);
/// The cells of one dimension that a part has, ascending; the local index of a cell is its place in the list.
std::vector<std::int64_t> owned_cells(const Axis& axis, Side side, std::int64_t part);

/// One rank's local array of a redistribution.
struct Local {
  std::vector<std::int64_t> cells[dims_max];
  std::int64_t extents[dims_max] = {1, 1, 1};
  std::int64_t strides[dims_max] = {0, 0, 0};  ///< in elements
  std::int64_t size = 0;
};
Local local_of(const Work& work, Side side, int rank);

/// Writes the value of every element.
void write(const Work& work, const Local& local, double* data, double salt);
/// Returns how many elements differ from that value.
std::int64_t count_wrong(const Work& work, const Local& local, const double* data, double salt);
/// Reads all elements, so that an operation is waited for and its result is used.
double sum(const double* data, std::int64_t size);

/// Consecutive cells that a source part and a target part share.
struct Run {
  std::int64_t from = 0;  ///< local index in the source
  std::int64_t to = 0;    ///< local index in the target
  std::int64_t length = 0;
};
/// The cells that one rank sends to another: all combinations of the runs of each dimension.
struct Shared {
  std::vector<Run> runs[dims_max];
  std::int64_t cells = 0;
};
Shared shared_cells(const Work& work, int from, int to);

/// A box of a local array.
struct Box {
  std::int64_t low[3];
  std::int64_t extents[3];
  std::int64_t cells() const { return extents[0] * extents[1] * extents[2]; }
};

/// One rank's local array of each field of a halo: row-major, ghosts around it.
struct Field {
  std::int64_t interior[3];
  std::int64_t stored[3];
  std::int64_t first[3];  ///< global number of the first owned cell
  std::int64_t size = 0;  ///< elements of one field
};
Field field_of(const Work& work, int rank);

/// The boxes that a rank gives to and takes from one of its 26 neighbours: `gives` is owned here, and lands in the
/// neighbour's box `takes` of the opposite direction.
struct Border {
  int neighbour = 0;
  Box gives;
  Box takes;
};
/// Returns the borders in 26 directions; entry 25 - i is the opposite of entry i.
std::vector<Border> borders_of(const Work& work, int rank);
/// The number of ghost cells of all fields of one rank.
std::int64_t payload_cells(const Work& work, int rank);

/// The number of cache lines that a rank's halo touches in all fields, each counted once: the lines of each owner that
/// it reads, and its own lines that it writes. A field begins with a line.
struct TouchedLines {
  std::vector<std::int64_t> reads;
  std::int64_t writes = 0;
};
TouchedLines touched_lines(const Work& work, int rank);

/// One pointer for each field, to its first stored element.
using Fields = std::vector<double*>;
void write_owned(const Work& work, int rank, const Fields& fields, double salt);
void write_ghosts(const Work& work, int rank, const Fields& fields, double value);
std::int64_t count_wrong_ghosts(const Work& work, int rank, const Fields& fields, double salt);
double sum_ghosts(const Work& work, int rank, const Fields& fields);

}  // namespace contest
