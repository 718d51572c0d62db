// dri.h: golden rows, random distributions against a second reading of the documents, and programs that are wrong.
#include <algorithm>
#include <atomic>
#include <complex>
#include <cstring>
#include <fstream>
#include <functional>
#include <mutex>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include <tranship/fabric/machine.hpp>
#include <tranship/fabric/processes/launch_program.hpp>

#include "face/dri/dri_programs.hpp"
#include "support/paths.hpp"
#include "support/random_layouts.hpp"

namespace tranship::test {
namespace {

INSTANTIATE_TEST_SUITE_P(On, Dri, ::testing::Values(On::threads, On::sim, On::apart, On::dealt),
                         [](const auto& info) { return std::string(name_of(info.param)); });
/// Of ranks that share variables of the test.
using DriOfOneProcess = Dri;
INSTANTIATE_TEST_SUITE_P(On, DriOfOneProcess, ::testing::Values(On::threads, On::sim),
                         [](const auto& info) { return std::string(name_of(info.param)); });

// The first example of the draft: 64 columns by 20 rows, dealt to 5 processes in pairs of rows.

using Complex = std::complex<float>;
Complex value_of(int frame, std::int64_t column, std::int64_t row) {
  return {float(frame * 10000 + row * 100 + column), float(-row)};
}

void send_frames(DRI_Group* group, int processes, int frames) {
  const int dims[2] = {64, 20}, process_dims[2] = {1, processes};
  DRI_Global_Data* data = nullptr;
  DRI_Partition parts[2];
  DRI_Distribution* distribution = nullptr;
  DRI_Bufferset* buffers = nullptr;
  DRI_Channel* channel = nullptr;
  ok(DRI_Global_Data_create(2, dims, DRI_COMPLEX, &data));
  ok(DRI_Partition_whole_create(&parts[0]));
  ok(DRI_Partition_block_create(nullptr, nullptr, 0, 1, &parts[1]));
  ok(DRI_Distribution_create(data, group, process_dims, parts, nullptr, &distribution));
  ok(DRI_Bufferset_system_create(3, distribution, &buffers));
  ok(DRI_Channel_create_send(2000, distribution, buffers, &channel));
  ok(DRI_Channel_connect(channel));
  for (int frame = 0; frame < frames; ++frame) {
    DRI_Buffer_Id* buffer = nullptr;
    ok(DRI_Channel_get(channel, &buffer));
    DRI_Blockinfo info;
    void* memory = nullptr;
    ok(DRI_Buffer_get_slice(buffer, 77, &info));  // ignored: nothing is block-cyclic
    ok(DRI_Buffer_get_memory(buffer, &memory, nullptr));
    for (std::int64_t row = 0; row < info.dims[1].length; ++row)
      for (std::int64_t column = 0; column < 64; ++column)
        static_cast<Complex*>(memory)[info.offset + row * info.dims[1].stride + column * info.dims[0].stride] =
            value_of(frame, column, info.dims[1].first + row);
    ok(DRI_Channel_put(channel, &buffer));
    require(buffer == nullptr, "a buffer that was put");
  }
  ok(DRI_Channel_destroy(&channel));
  ok(DRI_Bufferset_destroy(&buffers));
  ok(DRI_Distribution_destroy(&distribution));
}

void receive_frames(DRI_Group* group, int frames) {
  static const int order[2] = {0, 1}, strides[2] = {1, 2};
  const int dims[2] = {64, 20}, process_dims[2] = {1, 5};
  DRI_Global_Data* data = nullptr;
  DRI_Overlap *left = nullptr, *right = nullptr;
  DRI_Partition parts[2];
  DRI_Layout layout = nullptr;
  DRI_Distribution* distribution = nullptr;
  DRI_Bufferset* buffers = nullptr;
  DRI_Channel* channel = nullptr;
  int place = -1, slices = 0;
  size_t bytes = 0;
  ok(DRI_Group_rank(group, &place));
  ok(DRI_Global_Data_create(2, dims, DRI_COMPLEX, &data));
  ok(DRI_Overlap_create(DRI_OVERLAP_TOROIDAL, 1, &left));
  ok(DRI_Overlap_create(DRI_OVERLAP_TOROIDAL, 1, &right));
  ok(DRI_Partition_whole_create(&parts[0]));
  ok(DRI_Partition_blockcyclic_create(left, right, 2, &parts[1]));
  ok(DRI_Layout_create(512, order, strides, &layout));
  ok(DRI_Distribution_create(data, group, process_dims, parts, layout, &distribution));
  ok(DRI_Distribution_get_numslices(distribution, &slices));
  ok(DRI_Distribution_get_bufsize(distribution, &bytes));
  require(slices == 2, "{} slices", slices);
  // 512 elements in front, 8 rows at a pitch of 128, of which the last one ends after its 64 elements.
  require(bytes >= (512 + 7 * 128 + 64) * sizeof(Complex), "{} bytes", bytes);
  ok(DRI_Bufferset_system_create(2, distribution, &buffers));
  ok(DRI_Channel_create_recv(2000, distribution, buffers, &channel));
  ok(DRI_Channel_connect(channel));
  const int golden[5][2][4] = {{{19, 0, 1, 2}, {9, 10, 11, 12}},
                               {{1, 2, 3, 4}, {11, 12, 13, 14}},
                               {{3, 4, 5, 6}, {13, 14, 15, 16}},
                               {{5, 6, 7, 8}, {15, 16, 17, 18}},
                               {{7, 8, 9, 10}, {17, 18, 19, 0}}};
  for (int frame = 0; frame < frames; ++frame) {
    DRI_Buffer_Id* buffer = nullptr;
    void* memory = nullptr;
    ok(DRI_Channel_get(channel, &buffer));
    ok(DRI_Buffer_get_memory(buffer, &memory, nullptr));
    for (int slice = 0; slice < slices; ++slice) {
      DRI_Blockinfo info;
      ok(DRI_Buffer_get_slice(buffer, slice, &info));
      require(info.ndims == 2 && info.dims[0].length == 64 && info.dims[1].length == 4, "4 by 64");
      require(info.dims[0].stride == 1 && info.dims[1].stride == 128, "pitch {}", info.dims[1].stride);
      require(info.offset == 512 + slice * 4 * 128, "offset {}", info.offset);
      require(info.layout_order[0] == 0 && info.layout_order[1] == 1, "order");
      require(info.dims[1].left == 1 && info.dims[1].right == 1, "overlap");
      for (int row = 0; row < 4; ++row)
        for (int column = 0; column < 64; ++column) {
          const Complex found = static_cast<Complex*>(memory)[info.offset + row * 128 + column];
          require(found == value_of(frame, column, golden[place][slice][row]), "frame {}, slice {}, row {}: {}", frame,
                  slice, row, found.real());
        }
    }
    ok(DRI_Channel_put(channel, &buffer));
  }
  // Also where the senders are other processes, which may have exited.
  DRI_Buffer_Id* after = nullptr;
  refused(DRI_Channel_get(channel, &after), DRI_ERR_END, "channel 2000: the stream has ended");
  ok(DRI_Channel_destroy(&channel));
}

TEST_P(Dri, example_one_delivers_its_golden_rows) {
  EXPECT_EQ(fault(7,
                  [] {
                    ok(DRI_Init(nullptr, nullptr));
                    const int senders[] = {5, 6}, receivers[] = {0, 1, 2, 3, 4};
                    const bool sends = rank_of_world() >= 5;
                    DRI_Group* group = nullptr;
                    ok(DRI_Group_create(sends ? 2 : 5, sends ? senders : receivers, &group));
                    if (sends)
                      send_frames(group, 2, 7);
                    else
                      receive_frames(group, 7);
                    ok(DRI_Finalize());
                  }),
            "");
}

// The same as two programs, which know nothing of each other but the number of the channel. This program, with a filter
// that names one of the next two tests, is either.
TEST(DriPrograms, DISABLED_sender) {
  try {
    DRI_Group* group = nullptr;
    ok(DRI_Init(nullptr, nullptr));
    ok(DRI_Group_create_program(&group));
    send_frames(group, 2, 5);
    ok(DRI_Finalize());
  } catch (const Error& wrong) {
    FAIL() << wrong.message();
  }
}
TEST(DriPrograms, DISABLED_receiver) {
  try {
    DRI_Group* group = nullptr;
    ok(DRI_Init(nullptr, nullptr));
    ok(DRI_Group_create_program(&group));
    receive_frames(group, 5);
    ok(DRI_Finalize());
  } catch (const Error& wrong) {
    FAIL() << wrong.message();
  }
}
TEST(DriPrograms, of_two_executables_join_one_channel) {
  const ProgramResult result = launch_program(
      {}, {{2, this_program("DriPrograms.DISABLED_sender")}, {5, this_program("DriPrograms.DISABLED_receiver")}});
  EXPECT_EQ(result.exit_codes, std::vector<int>(7, 0)) << result.reason;
}
TEST(DriPrograms, fail_where_the_other_side_does_not_come) {
  setenv("TRANSHIP_TIMEOUT", "0.2", 1);
  const ProgramResult result = launch_program({}, {{2, this_program("DriPrograms.DISABLED_sender")}});
  unsetenv("TRANSHIP_TIMEOUT");
  EXPECT_NE(result.exit_codes[0], 0);
  EXPECT_NE(result.exit_codes[1], 0);
}

TEST(DriInit, needs_no_launcher) {
  // In a process of its own, for a process joins once.
  const auto body = [] {
    int rank = -1;
    int code = DRI_Init(nullptr, nullptr);
    DRI_Group* group = nullptr;
    code += DRI_Group_create_world(&group);
    code += DRI_Group_rank(group, &rank);
    const int again = DRI_Init(nullptr, nullptr);
    code += DRI_Finalize();
    const int after = DRI_Finalize();
    std::exit(code == 0 && rank == 0 && again == DRI_ERR_ORDER && after == DRI_ERR_ORDER ? 7 : 1);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(7), "");
}

/// One rank after another says what it holds along its one dimension.
DRI_Blockdim slice_along(int extent, int processes, DRI_Overlap_type edge, int overlap,
                         std::int64_t* value_before_end) {
  const int dims[1] = {extent}, process_dims[1] = {processes};
  DRI_Group* all = nullptr;
  DRI_Global_Data* data = nullptr;
  DRI_Overlap* sides = nullptr;
  DRI_Partition source_part, target_part;
  DRI_Distribution *source = nullptr, *target = nullptr;
  DRI_Bufferset *out = nullptr, *in = nullptr;
  DRI_Channel *send = nullptr, *receive = nullptr;
  ok(DRI_Group_create_world(&all));
  ok(DRI_Global_Data_create(1, dims, DRI_LONG, &data));
  ok(DRI_Overlap_create(edge, overlap, &sides));
  ok(DRI_Partition_block_create(nullptr, nullptr, 0, 1, &source_part));
  ok(DRI_Partition_block_create(sides, sides, 0, 1, &target_part));
  ok(DRI_Distribution_create(data, all, process_dims, &source_part, nullptr, &source));
  ok(DRI_Distribution_create(data, all, process_dims, &target_part, nullptr, &target));
  ok(DRI_Bufferset_system_create(1, source, &out));
  ok(DRI_Bufferset_system_create(1, target, &in));
  ok(DRI_Channel_create_send(1, source, out, &send));
  ok(DRI_Channel_create_recv(1, target, in, &receive));
  ok(DRI_Channel_connect(receive));  // one group among itself: the first one waits for nobody
  DRI_Buffer_Id* buffer = nullptr;
  refused(DRI_Channel_get(receive, &buffer), DRI_ERR_ORDER, "its other end");
  ok(DRI_Channel_connect(send));
  DRI_Blockinfo info;
  void* memory = nullptr;
  ok(DRI_Channel_get(send, &buffer));
  ok(DRI_Buffer_get_memory(buffer, &memory, nullptr));
  ok(DRI_Buffer_get_slice(buffer, 0, &info));
  for (std::int64_t i = 0; i < info.dims[0].length; ++i)
    static_cast<long*>(memory)[info.offset + i] = 100 + info.dims[0].first + i;
  ok(DRI_Channel_put(send, &buffer));
  ok(DRI_Channel_get(receive, &buffer));
  ok(DRI_Buffer_get_memory(buffer, &memory, nullptr));
  ok(DRI_Buffer_get_slice(buffer, 0, &info));
  for (std::int64_t i = 0; i < info.dims[0].length; ++i) {
    const std::int64_t at = info.dims[0].first + i, found = static_cast<long*>(memory)[info.offset + i];
    const std::int64_t expected = at < 0 || at >= extent ? 0 : 100 + at;
    require(found == expected, "element {} is {}, not {}", at, found, expected);
  }
  *value_before_end = static_cast<long*>(memory)[info.offset + info.dims[0].length - 1];
  ok(DRI_Channel_put(receive, &buffer));
  ok(DRI_Channel_destroy(&send));
  ok(DRI_Channel_destroy(&receive));
  return info.dims[0];
}

// The case of December 2000: 5 columns on 4 processes with an overlap of 2 and zero padding. Rank 2 gets one column of
// data and one of padding on its right.
TEST_P(Dri, five_columns_on_four_processes) {
  EXPECT_EQ(fault(4,
                  [] {
                    ok(DRI_Init(nullptr, nullptr));
                    const int rank = rank_of_world();
                    std::int64_t last = -1;
                    const DRI_Blockdim dim = slice_along(5, 4, DRI_OVERLAP_PAD_ZEROS, 2, &last);
                    const int first[] = {0, 2, 3, 4}, owned[] = {2, 1, 1, 1};
                    require(dim.first + dim.left == first[rank], "rank {} begins at {}", rank, dim.first + dim.left);
                    require(dim.length - dim.left - dim.right == owned[rank] && dim.right == 2, "rank {}", rank);
                    if (rank == 2) require(dim.first + dim.length == 6 && last == 0, "1 real and 1 pad column");
                    ok(DRI_Finalize());
                  }),
            "");
}

/// A random distribution, as a test reads the documents a second time.
struct Side {
  int processes[3];
  struct Axis {
    int kind = 0;  // whole, block, block-cyclic
    int size = 1, minimum = 0, modulo = 1;
    int remainder = 0;
    int edge[2] = {0, 0}, width[2] = {0, 0};
  } axes[3];
  int order[3], strides[3];
  int offset = 0, buffers = 1;
  bool is_user = false;
  std::vector<int> ranks;
};

struct Case {
  int world = 1, dims = 1, frames = 1, type = 1;
  int extents[3];
  Side sides[2];
};

Side random_side(Random& random, const Case& c) {
  Side out;
  int product = 1;
  for (int d = 0; d < c.dims; ++d) {
    Side::Axis& axis = out.axes[d];
    out.processes[d] = 1;
    axis.kind = int(random.below(3));
    if (axis.kind > 0) out.processes[d] = int(random.between(1, std::max(1, c.world / product)));
    product *= out.processes[d];
    if (axis.kind == 1) {
      axis.remainder = int(random.below(3));
      if (random.one_in(4)) axis.minimum = int(random.below(4));
      if (random.one_in(4)) axis.modulo = int(random.between(1, 3));
    }
    if (axis.kind == 2) axis.size = int(random.between(1, 4));
    for (int side = 0; side < 2 && axis.kind > 0; ++side) {
      axis.edge[side] = int(random.below(5));
      axis.width[side] = random.one_in(2) ? 0 : int(random.below(1 + std::min(3, c.extents[d])));
    }
  }
  for (int d = 0; d < c.dims; ++d) out.order[d] = d, out.strides[d] = random.one_in(3) ? 2 : 1;
  for (int d = c.dims - 1; d > 0; --d) std::swap(out.order[d], out.order[random.below(d + 1)]);
  out.offset = random.one_in(2) ? 0 : int(random.below(9));
  out.buffers = int(random.between(1, 3));
  out.is_user = random.one_in(2);
  std::vector<int> all(static_cast<std::size_t>(c.world));
  std::iota(all.begin(), all.end(), 0);
  random.shuffle(all);
  all.resize(std::size_t(product));
  out.ranks = all;
  return out;
}

bool is_in(const Side& side, int rank) {
  return std::find(side.ranks.begin(), side.ranks.end(), rank) != side.ranks.end();
}

Case random_case(std::uint64_t seed) {
  Random random(seed);
  Case c;
  c.world = int(random.between(1, 5));
  c.dims = int(random.between(1, 3));
  c.frames = int(random.between(1, 5));
  c.type = int(random.between(1, 11));
  for (int d = 0; d < c.dims; ++d) c.extents[d] = int(random.between(1, 11));
  for (Side& side : c.sides) side = random_side(random, c);
  return c;
}

/// A number for each element, small enough for a short.
int number_of(const Case& c, int frame, const std::int64_t at[3]) {
  std::int64_t id = 0;
  for (int d = 0; d < c.dims; ++d) id = id * c.extents[d] + at[d];
  return int((id * 5 + frame * 1009) % 20011 + 1);
}

template <class T>
void store(void* memory, std::int64_t at, double value) {
  static_cast<T*>(memory)[at] = T(value);
}
template <class T>
double load(const void* memory, std::int64_t at) {
  return double(static_cast<const T*>(memory)[at]);
}
void store(int type, void* memory, void* imaginary, std::int64_t at, int value) {
  switch (type) {
    case DRI_FLOAT:
      return store<float>(memory, at, value);
    case DRI_DOUBLE:
      return store<double>(memory, at, value);
    case DRI_COMPLEX:
      store<float>(memory, 2 * at, value);
      return store<float>(memory, 2 * at + 1, -value);
    case DRI_DOUBLE_COMPLEX:
      store<double>(memory, 2 * at, value);
      return store<double>(memory, 2 * at + 1, -value);
    case DRI_COMPLEX_SPLIT:
      store<float>(memory, at, value);
      return store<float>(imaginary, at, -value);
    case DRI_DOUBLE_COMPLEX_SPLIT:
      store<double>(memory, at, value);
      return store<double>(imaginary, at, -value);
    case DRI_INTEGER:
      return store<int>(memory, at, value);
    case DRI_SHORT:
      return store<short>(memory, at, value);
    case DRI_UNSIGNED_SHORT:
      return store<unsigned short>(memory, at, value);
    case DRI_LONG:
      return store<long>(memory, at, value);
    default:
      return store<unsigned long>(memory, at, value);
  }
}
std::pair<double, double> load(int type, const void* memory, const void* imaginary, std::int64_t at) {
  switch (type) {
    case DRI_FLOAT:
      return {load<float>(memory, at), 0};
    case DRI_DOUBLE:
      return {load<double>(memory, at), 0};
    case DRI_COMPLEX:
      return {load<float>(memory, 2 * at), load<float>(memory, 2 * at + 1)};
    case DRI_DOUBLE_COMPLEX:
      return {load<double>(memory, 2 * at), load<double>(memory, 2 * at + 1)};
    case DRI_COMPLEX_SPLIT:
      return {load<float>(memory, at), load<float>(imaginary, at)};
    case DRI_DOUBLE_COMPLEX_SPLIT:
      return {load<double>(memory, at), load<double>(imaginary, at)};
    case DRI_INTEGER:
      return {load<int>(memory, at), 0};
    case DRI_SHORT:
      return {load<short>(memory, at), 0};
    case DRI_UNSIGNED_SHORT:
      return {load<unsigned short>(memory, at), 0};
    case DRI_LONG:
      return {load<long>(memory, at), 0};
    default:
      return {load<unsigned long>(memory, at), 0};
  }
}
bool is_complex_type(int type) {
  return type >= DRI_COMPLEX && type <= DRI_DOUBLE_COMPLEX_SPLIT;
}

/// The cell that a stored position stands for; -1: zero.
std::int64_t resolved(const Side::Axis& axis, std::int64_t extent, std::int64_t at, const DRI_Blockdim& dim) {
  if (at >= 0 && at < extent) return at;
  const std::int64_t first = dim.first + dim.left, last = dim.first + dim.length - dim.right - 1;
  switch (axis.edge[at < 0 ? 0 : 1]) {
    case DRI_OVERLAP_TOROIDAL:
      return ((at % extent) + extent) % extent;
    case DRI_OVERLAP_PAD_ZEROS:
      return -1;
    case DRI_OVERLAP_PAD_REPLICATED:
      return at < 0 ? first : last;
    case DRI_OVERLAP_PAD_REPLICATED_GLOBAL:
      return at < 0 ? 0 : extent - 1;
    default:
      throw Error(ErrorCode::internal,
                  fmt::format("position {} of {} is stored where overlap is truncated", at, extent));
  }
}

/// Whether a place of the process grid owns what the rules say, block by block.
void check_dim(const Side::Axis& axis, int extent, int processes, int coordinate, const DRI_Blockdim& dim) {
  const std::int64_t first = dim.first + dim.left, owned = dim.length - dim.left - dim.right;
  require(owned > 0 && first >= 0 && first + owned <= extent, "owns {} at {}", owned, first);
  if (axis.kind == 0) require(first == 0 && owned == extent, "whole");
  if (axis.kind == 2) {
    require(first % axis.size == 0 && (first / axis.size) % processes == coordinate, "block at {}", first);
    require(owned == std::min<std::int64_t>(axis.size, extent - first), "block of {}", owned);
  }
  if (axis.kind == 1 && axis.minimum == 0 && axis.modulo == 1) {
    const int base = extent / processes, more = extent % processes;
    if (axis.remainder == 0)
      require(first == coordinate * base + std::min(coordinate, more) && owned == base + (coordinate < more), "low");
    if (axis.remainder == 1)
      require(first == coordinate * base + std::max(0, coordinate - (processes - more)) &&
                  owned == base + (coordinate >= processes - more),
              "high");
    const int size = (extent + processes - 1) / processes;
    if (axis.remainder == 2)
      require(first == coordinate * size && owned == std::min(size, extent - coordinate * size), "ceil");
  }
  if (axis.kind == 1 && first + owned < extent)
    require(owned >= axis.minimum && owned % axis.modulo == 0, "{} of minimum {} and modulo {}", owned, axis.minimum,
            axis.modulo);
  const std::int64_t beyond[2] = {std::max<std::int64_t>(0, axis.width[0] - first),
                                  std::max<std::int64_t>(0, first + owned + axis.width[1] - extent)};
  require(dim.left == axis.width[0] - (axis.edge[0] == DRI_OVERLAP_TRUNCATE ? beyond[0] : 0), "left {}", dim.left);
  require(dim.right == axis.width[1] - (axis.edge[1] == DRI_OVERLAP_TRUNCATE ? beyond[1] : 0), "right {}", dim.right);
}

class Rank1 {
 public:
  Rank1(const Case& c, int rank) : case_(c), rank_(rank) {}

  void run() {
    for (int s = 0; s < 2; ++s)
      if (is_in(case_.sides[s], rank_)) create(s);
    for (int s = 0; s < 2; ++s)
      if (channels_[s]) ok(DRI_Channel_connect(channels_[s]));
    for (int frame = 0; frame < case_.frames; ++frame) {
      if (channels_[0]) send(frame);
      if (channels_[1]) receive(frame);
    }
    for (int s = 0; s < 2; ++s)
      if (channels_[s]) ok(DRI_Channel_destroy(&channels_[s]));
  }

 private:
  void create(int s) {
    const Side& side = case_.sides[s];
    DRI_Group* group = nullptr;
    DRI_Global_Data* data = nullptr;
    DRI_Partition parts[3];
    DRI_Layout layout = nullptr;
    DRI_Bufferset* buffers = nullptr;
    ok(DRI_Group_create(int(side.ranks.size()), side.ranks.data(), &group));
    ok(DRI_Global_Data_create(case_.dims, case_.extents, DRI_Dataspec(case_.type), &data));
    for (int d = 0; d < case_.dims; ++d) {
      const Side::Axis& axis = side.axes[d];
      DRI_Overlap* overlaps[2] = {};
      for (int e = 0; e < 2; ++e)
        if (axis.width[e] > 0) ok(DRI_Overlap_create(DRI_Overlap_type(axis.edge[e]), axis.width[e], &overlaps[e]));
      if (axis.kind == 0) ok(DRI_Partition_whole_create(&parts[d]));
      if (axis.kind == 1) {
        ok(DRI_Partition_block_create(overlaps[0], overlaps[1], axis.minimum, axis.modulo, &parts[d]));
        ok(DRI_Partition_set_remainder(parts[d], DRI_Remainder(axis.remainder)));
      }
      if (axis.kind == 2) ok(DRI_Partition_blockcyclic_create(overlaps[0], overlaps[1], axis.size, &parts[d]));
      for (DRI_Overlap* overlap : overlaps)
        if (overlap) ok(DRI_Overlap_destroy(&overlap));
    }
    ok(DRI_Layout_create_nd(case_.dims, side.offset, side.order, side.strides, &layout));
    ok(DRI_Distribution_create(data, group, side.processes, parts, layout, &distributions_[s]));
    size_t bytes = 0;
    ok(DRI_Distribution_get_bufsize(distributions_[s], &bytes));
    if (side.is_user) {
      std::vector<void*> planes[2];
      for (int i = 0; i < side.buffers; ++i)
        for (auto& plane : planes) plane.push_back(memory_.emplace_back(bytes + 16).data());
      ok(DRI_Bufferset_user_create(side.buffers, planes[0].data(), planes[1].data(), distributions_[s], &buffers));
    } else {
      ok(DRI_Bufferset_system_create(side.buffers, distributions_[s], &buffers));
    }
    ok((s == 0 ? DRI_Channel_create_send : DRI_Channel_create_recv)(3, distributions_[s], buffers, &channels_[s]));
    ok(DRI_Bufferset_destroy(&buffers));
    ok(DRI_Layout_destroy(&layout));
    for (int d = 0; d < case_.dims; ++d) ok(DRI_Partition_destroy(&parts[d]));
    ok(DRI_Global_Data_destroy(&data));
    ok(DRI_Group_destroy(&group));
  }

  template <class F>
  void for_each_element(int s, DRI_Buffer_Id* buffer, F&& f) {
    const Side& side = case_.sides[s];
    int slices = 0;
    ok(DRI_Distribution_get_numslices(distributions_[s], &slices));
    for (int n = 0; n < slices; ++n) {
      DRI_Blockinfo info;
      ok(DRI_Buffer_get_slice(buffer, n, &info));
      int place = int(std::find(side.ranks.begin(), side.ranks.end(), rank_) - side.ranks.begin());
      std::int64_t count = 1;
      for (int d = case_.dims - 1; d >= 0; --d) {
        check_dim(side.axes[d], case_.extents[d], side.processes[d], place % side.processes[d], info.dims[d]);
        place /= side.processes[d];
        count *= info.dims[d].length;
        require(info.layout_order[d] == side.order[d], "order");
      }
      for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t at[3], rest = i, offset = info.offset;
        for (int d = case_.dims - 1; d >= 0; --d) {
          at[d] = info.dims[d].first + rest % info.dims[d].length;
          offset += (rest % info.dims[d].length) * info.dims[d].stride;
          rest /= info.dims[d].length;
        }
        f(info, at, offset);
      }
    }
  }

  void send(int frame) {
    DRI_Buffer_Id* buffer = nullptr;
    void *memory = nullptr, *imaginary = nullptr;
    ok(DRI_Channel_get(channels_[0], &buffer));
    ok(DRI_Buffer_get_memory(buffer, &memory, &imaginary));
    for_each_element(0, buffer, [&](const DRI_Blockinfo& info, const std::int64_t at[3], std::int64_t offset) {
      bool is_owned = true;
      for (int d = 0; d < case_.dims; ++d)
        is_owned &= at[d] >= info.dims[d].first + info.dims[d].left &&
                    at[d] < info.dims[d].first + info.dims[d].length - info.dims[d].right;
      store(case_.type, memory, imaginary, offset, is_owned ? number_of(case_, frame, at) : 31111);
    });
    ok(DRI_Channel_put(channels_[0], &buffer));
  }

  void receive(int frame) {
    DRI_Buffer_Id* buffer = nullptr;
    void *memory = nullptr, *imaginary = nullptr;
    int flag = 0;
    while (frame % 2 == 1 && flag == 0) ok(DRI_Channel_gettest(channels_[1], &buffer, &flag));
    if (frame % 2 == 0) ok(DRI_Channel_get(channels_[1], &buffer));
    ok(DRI_Buffer_get_memory(buffer, &memory, &imaginary));
    for_each_element(1, buffer, [&](const DRI_Blockinfo& info, const std::int64_t at[3], std::int64_t offset) {
      std::int64_t cell[3];
      bool is_zero = false;
      for (int d = 0; d < case_.dims; ++d) {
        cell[d] = resolved(case_.sides[1].axes[d], case_.extents[d], at[d], info.dims[d]);
        is_zero |= cell[d] < 0;
      }
      const double expected = is_zero ? 0 : number_of(case_, frame, cell);
      const auto [real, other] = load(case_.type, memory, imaginary, offset);
      require(real == expected && (!is_complex_type(case_.type) || other == -expected),
              "frame {}, position [{}]: {} and {}, not {}", frame, fmt::join(at, at + case_.dims, ", "), real, other,
              expected);
    });
    if (frame % 2 == 0)
      ok(DRI_Channel_put(channels_[1], &buffer));
    else
      ok(DRI_Channel_puttest(channels_[1], &buffer, &flag));
  }

  const Case& case_;
  int rank_;
  std::vector<std::vector<char>> memory_;
  DRI_Distribution* distributions_[2] = {};
  DRI_Channel* channels_[2] = {};
};

TEST_P(Dri, random_distributions_deliver_what_the_documents_say) {
  const double share = GetParam() == On::sim ? 0.05 : 0.1;
  EXPECT_EQ(first_fault(share,
                        [&](std::uint64_t seed) {
                          const Case c = random_case(seed);
                          return test::fault(GetParam(), c.world, seed, [&] {
                            ok(DRI_Init(nullptr, nullptr));
                            Rank1(c, rank_of_world()).run();
                            ok(DRI_Finalize());
                          });
                        }),
            "");
}

// Groups in any order, at no equal steps: ranks 5, 0, 3 send to 1, 5; ranks 2 and 4 know nothing of it.
TEST_P(Dri, sides_are_any_ranks_in_any_order) {
  EXPECT_EQ(fault(6,
                  [] {
                    ok(DRI_Init(nullptr, nullptr));
                    const int rank = rank_of_world(), senders[3] = {5, 0, 3}, receivers[2] = {1, 5}, dims[1] = {12};
                    DRI_Global_Data* data = nullptr;
                    ok(DRI_Global_Data_create(1, dims, DRI_INTEGER, &data));
                    DRI_Partition part = nullptr;
                    ok(DRI_Partition_block_create(nullptr, nullptr, 0, 1, &part));
                    DRI_Channel* ends[2] = {};
                    int places[2] = {-1, -1};
                    for (const int side : {0, 1}) {
                      const int count = side == 0 ? 3 : 2;
                      DRI_Group* group = nullptr;
                      DRI_Distribution* distribution = nullptr;
                      DRI_Bufferset* buffers = nullptr;
                      ok(DRI_Group_create(count, side == 0 ? senders : receivers, &group));
                      ok(DRI_Group_rank(group, &places[side]));
                      if (places[side] >= 0) {
                        ok(DRI_Distribution_create(data, group, &count, &part, nullptr, &distribution));
                        ok(DRI_Bufferset_system_create(1 + side, distribution, &buffers));
                        ok((side == 0 ? DRI_Channel_create_send : DRI_Channel_create_recv)(4, distribution, buffers,
                                                                                           &ends[side]));
                      }
                      ok(DRI_Group_destroy(&group));
                    }
                    for (DRI_Channel* end : ends)
                      if (end) ok(DRI_Channel_connect(end));
                    for (int frame = 0; frame < 5; ++frame)
                      for (const int side : {0, 1}) {
                        if (!ends[side]) continue;
                        DRI_Buffer_Id* buffer = nullptr;
                        void* memory = nullptr;
                        ok(DRI_Channel_get(ends[side], &buffer));
                        ok(DRI_Buffer_get_memory(buffer, &memory, nullptr));
                        int* const values = static_cast<int*>(memory);
                        const int length = side == 0 ? 4 : 6;
                        for (int i = 0; i < length; ++i) {
                          const int value = 100 * frame + places[side] * length + i;
                          if (side == 0) values[i] = value;
                          require(values[i] == value, "frame {}, rank {}: {} is not {}", frame, rank, values[i], value);
                        }
                        ok(DRI_Channel_put(ends[side], &buffer));
                      }
                    for (DRI_Channel*& end : ends)
                      if (end) ok(DRI_Channel_destroy(&end));
                    ok(DRI_Finalize());
                  }),
            "");
}

/// A distribution that MPI has made, and which elements each of its processes has, in the order of memory.
struct DarrayCase {
  std::vector<int> extents, processes, cuts, order;
  std::vector<std::vector<int>> elements;
};
std::vector<DarrayCase> darray_cases() {
  std::ifstream file(test_path("fixtures/dri/darray.txt"));
  std::vector<DarrayCase> out;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    DarrayCase& c = out.emplace_back();
    char order = 0;
    int dims = 0, ranks = 1;
    words >> order >> dims;
    for (int d = 0; d < dims; ++d) {
      int extent = 0, processes = 0, cut = 0;
      words >> extent >> processes >> cut;
      c.extents.push_back(extent);
      c.processes.push_back(processes);
      c.cuts.push_back(cut);
      c.order.push_back(order == 'F' ? d : dims - 1 - d);
      ranks *= processes;
    }
    for (int rank = 0; rank < ranks && std::getline(file, line); ++rank) {
      std::istringstream numbers(line);
      std::size_t count = 0;
      numbers >> count;
      std::vector<int>& list = c.elements.emplace_back(count);
      for (int& number : list) numbers >> number;
    }
  }
  return out;
}

/// One end of channel 1 for `c` or, without any cut, for the whole array.
DRI_Channel* darray_end(const DarrayCase& c, const std::vector<int>& ranks, bool is_whole) {
  const int dims = int(c.extents.size());
  const std::vector<int> ones(c.extents.size(), 1);
  DRI_Global_Data* data = nullptr;
  DRI_Group* group = nullptr;
  std::vector<DRI_Partition> parts(c.extents.size());
  DRI_Layout layout = nullptr;
  DRI_Distribution* distribution = nullptr;
  DRI_Bufferset* buffers = nullptr;
  DRI_Channel* channel = nullptr;
  ok(DRI_Global_Data_create(dims, c.extents.data(), DRI_INTEGER, &data));
  ok(DRI_Group_create(int(ranks.size()), ranks.data(), &group));
  for (std::size_t d = 0; d < parts.size(); ++d) {
    const int cut = is_whole ? 0 : c.cuts[d];
    if (cut == 0) ok(DRI_Partition_whole_create(&parts[d]));
    if (cut > 0) ok(DRI_Partition_blockcyclic_create(nullptr, nullptr, cut, &parts[d]));
    if (cut >= 0) continue;
    ok(DRI_Partition_block_create(nullptr, nullptr, 0, 1, &parts[d]));
    ok(DRI_Partition_set_remainder(parts[d], DRI_REMAINDER_CEIL));
  }
  ok(DRI_Layout_create_nd(dims, 0, c.order.data(), nullptr, &layout));
  ok(DRI_Distribution_create(data, group, is_whole ? ones.data() : c.processes.data(), parts.data(), layout,
                             &distribution));
  ok(DRI_Bufferset_system_create(1, distribution, &buffers));
  ok((is_whole ? DRI_Channel_create_send : DRI_Channel_create_recv)(1, distribution, buffers, &channel));
  return channel;
}

// An outside oracle: rank 0 sends all numbers; each process gets those of MPI's darray, in the order of memory.
TEST_P(Dri, distributions_are_those_of_darray) {
  const std::vector<DarrayCase> cases = darray_cases();
  ASSERT_EQ(cases.size(), 60U);
  for (const DarrayCase& c : cases) {
    const int ranks = int(c.elements.size());
    const std::string found = fault(
        ranks,
        [&] {
          ok(DRI_Init(nullptr, nullptr));
          const int rank = rank_of_world();
          std::vector<int> all(static_cast<std::size_t>(ranks));
          std::iota(all.begin(), all.end(), 0);
          DRI_Channel* const receive = darray_end(c, all, false);
          DRI_Channel* const send = rank == 0 ? darray_end(c, {0}, true) : nullptr;
          ok(DRI_Channel_connect(receive));
          if (send) ok(DRI_Channel_connect(send));
          for (DRI_Channel* channel : {send, receive}) {
            if (!channel) continue;
            DRI_Buffer_Id* buffer = nullptr;
            void* memory = nullptr;
            std::size_t bytes = 0;
            ok(DRI_Channel_get(channel, &buffer));
            ok(DRI_Buffer_get_memory(buffer, &memory, nullptr));
            ok(DRI_Buffer_get_bytes(buffer, &bytes));
            int* const numbers = static_cast<int*>(memory);
            if (channel == send) std::iota(numbers, numbers + bytes / sizeof(int), 0);
            const std::vector<int> got(numbers, numbers + bytes / sizeof(int));
            if (channel == receive)
              require(got == c.elements[std::size_t(rank)], "rank {} has {}, not {}", rank, fmt::join(got, " "),
                      fmt::join(c.elements[std::size_t(rank)], " "));
            ok(DRI_Channel_put(channel, &buffer));
          }
          for (DRI_Channel* channel : {send, receive})
            if (channel) ok(DRI_Channel_destroy(&channel));
          ok(DRI_Finalize());
        },
        1);
    ASSERT_EQ(found, "") << fmt::format("extents {}, processes {}, cuts {}", c.extents, c.processes, c.cuts);
  }
}

// A frame goes around a ring of channels by the names of 1.0.
TEST_P(Dri, reorgs_of_the_other_dialect) {
  EXPECT_EQ(fault(3,
                  [] {
                    ok(DRI_Init(nullptr, nullptr));
                    const int rank = rank_of_world(), one = 1, dims[1] = {4}, next = (rank + 1) % 3;
                    dri_global_data* data = nullptr;
                    dri_group* self = nullptr;
                    dri_distribution* mine = nullptr;
                    DRI_Partition part = nullptr;
                    dri_channel *out = nullptr, *in = nullptr;
                    ok(DRI_Group_create(1, &rank, &self));
                    ok(DRI_Globaldata_create(1, dims, &data));
                    ok(DRI_Partition_whole_create(&part));
                    ok(DRI_Distribution_create(data, self, &one, &part, nullptr, &mine));
                    size_t bytes = 0;
                    refused(DRI_Distribution_get_bufsize(mine, &bytes), DRI_ERR_ORDER, "no type");
                    ok(DRI_Distribution_get_bufsize_of(mine, DRI_SHORT, &bytes));
                    require(bytes == 8, "{} bytes", bytes);
                    short memory[4] = {};
                    void* const list[1] = {memory};
                    const std::string long_name(1025, 'x');
                    const std::pair<const char*, const char*> bad_names[] = {
                        {"", "needs a name"}, {"a\nb", "new line"}, {long_name.c_str(), "1025; 1 to 1024"}};
                    for (const auto& [name, part_of_detail] : bad_names)
                      refused(DRI_Reorg_create(DRI_LIBRARY_NATIVE, DRI_SEND, name, DRI_SHORT, mine, 1, &out),
                              DRI_ERR_ARGUMENT, part_of_detail);
                    ok(DRI_Reorg_create_user(DRI_LIBRARY_NATIVE, DRI_SEND, fmt::format("to {}", next).c_str(),
                                             DRI_SHORT, mine, 1, list, nullptr, &out));
                    ok(DRI_Reorg_create(DRI_LIBRARY_NATIVE, DRI_RECV, fmt::format("to {}", rank).c_str(), DRI_SHORT,
                                        mine, 2, &in));
                    // Edges of the ring in one order: 0 -> 1, 1 -> 2, 2 -> 0.
                    for (int from = 0; from < 3; ++from) {
                      if (from == rank) ok(DRI_Reorg_connect(out));
                      if ((from + 1) % 3 == rank) ok(DRI_Reorg_connect(in));
                    }
                    for (int round = 0; round < 4; ++round) {
                      dri_buffer* part_out = nullptr;
                      dri_buffer* part_in = nullptr;
                      void* at = nullptr;
                      ok(DRI_Reorg_get(out, &part_out));
                      for (int i = 0; i < 4; ++i) memory[i] = short(100 * rank + 10 * round + i);
                      ok(DRI_Reorg_put(out, &part_out));
                      ok(DRI_Reorg_get(in, &part_in));
                      ok(DRI_Buffer_get_memory(part_in, &at, nullptr));
                      for (int i = 0; i < 4; ++i)
                        require(static_cast<short*>(at)[i] == 100 * ((rank + 2) % 3) + 10 * round + i, "round {}",
                                round);
                      ok(DRI_Reorg_put(in, &part_in));
                    }
                    ok(DRI_Reorg_destroy(&out));
                    ok(DRI_Reorg_destroy(&in));
                    ok(DRI_Finalize());
                  }),
            "");
}

TEST_P(Dri, wrong_programs_are_refused_and_nothing_happens) {
  EXPECT_EQ(
      fault(2,
            [] {
              DRI_Global_Data* data = nullptr;
              DRI_Group* group = nullptr;
              const int dims[2] = {6, 4}, processes[2] = {1, 2};
              refused(DRI_Global_Data_create(2, dims, DRI_FLOAT, &data), DRI_ERR_ORDER, "DRI_Init");
              refused(DRI_Finalize(), DRI_ERR_ORDER, "DRI_Init");
              ok(DRI_Init(nullptr, nullptr));
              refused(DRI_Init(nullptr, nullptr), DRI_ERR_ORDER, "before");
              refused(DRI_Launch_threads(2, Body::call, nullptr), DRI_ERR_ORDER, "rank already");
              refused(DRI_Global_Data_create(0, dims, DRI_FLOAT, &data), DRI_ERR_ARGUMENT, "is 0; 1 to 8");
              refused(DRI_Global_Data_create(9, dims, DRI_FLOAT, &data), DRI_ERR_ARGUMENT, "is 9; 1 to 8");
              refused(DRI_Global_Data_create(2, nullptr, DRI_FLOAT, &data), DRI_ERR_ARGUMENT, "dims is NULL");
              refused(DRI_Global_Data_create(2, dims, DRI_FLOAT, nullptr), DRI_ERR_ARGUMENT, "data is NULL");
              refused(DRI_Global_Data_create(2, dims, DRI_Dataspec(12), &data), DRI_ERR_ARGUMENT, "12");
              const int negative[2] = {6, -4};
              refused(DRI_Global_Data_create(2, negative, DRI_FLOAT, &data), DRI_ERR_ARGUMENT, "-4");
              require(data == nullptr, "an output of a refused call");
              const int twice[2] = {1, 1}, beyond[1] = {2};
              refused(DRI_Group_create(2, twice, &group), DRI_ERR_ARGUMENT, "twice");
              refused(DRI_Group_create(1, beyond, &group), DRI_ERR_ARGUMENT, "0 to 1");
              refused(DRI_Group_create(0, twice, &group), DRI_ERR_ARGUMENT, "ranks is 0");
              DRI_Overlap* overlap = nullptr;
              refused(DRI_Overlap_create(DRI_Overlap_type(9), 1, &overlap), DRI_ERR_ARGUMENT, "9");
              refused(DRI_Overlap_create(DRI_OVERLAP_TRUNCATE, -1, &overlap), DRI_ERR_ARGUMENT, "-1");
              DRI_Partition parts[2] = {nullptr, nullptr};
              refused(DRI_Partition_blockcyclic_create(nullptr, nullptr, 0, &parts[0]), DRI_ERR_ARGUMENT, "0");
              refused(DRI_Partition_block_create(nullptr, nullptr, 0, 0, &parts[0]), DRI_ERR_ARGUMENT, "modulo");
              ok(DRI_Overlap_create(DRI_OVERLAP_TRUNCATE, 1, &overlap));
              DRI_Overlap* const copy = overlap;
              ok(DRI_Overlap_destroy(&overlap));
              refused(DRI_Overlap_destroy(&overlap), DRI_ERR_HANDLE, "NULL");
              DRI_Overlap* again = copy;
              refused(DRI_Overlap_destroy(&again), DRI_ERR_HANDLE, "destroyed");
              refused(DRI_Partition_blockcyclic_create(copy, nullptr, 1, &parts[0]), DRI_ERR_HANDLE, "destroyed");

              ok(DRI_Global_Data_create(2, dims, DRI_FLOAT, &data));
              ok(DRI_Group_create_world(&group));
              refused(DRI_Overlap_destroy(reinterpret_cast<DRI_Overlap**>(&group)), DRI_ERR_HANDLE,
                      "of the kind 'group'");
              require(group != nullptr, "a handle of another kind");
              ok(DRI_Partition_whole_create(&parts[0]));
              ok(DRI_Partition_block_create(nullptr, nullptr, 0, 1, &parts[1]));
              refused(DRI_Partition_set_remainder(parts[0], DRI_REMAINDER_HIGH), DRI_ERR_ARGUMENT, "whole");
              DRI_Layout layout = nullptr;
              const int bad_order[2] = {1, 1}, order[2] = {1, 0}, bad_strides[2] = {0, 1};
              refused(DRI_Layout_create_nd(2, 0, bad_order, nullptr, &layout), DRI_ERR_ARGUMENT, "twice");
              refused(DRI_Layout_create_nd(2, 0, order, bad_strides, &layout), DRI_ERR_ARGUMENT, "stride");
              refused(DRI_Layout_create_nd(2, -1, order, nullptr, &layout), DRI_ERR_ARGUMENT, "offset");
              DRI_Distribution* distribution = nullptr;
              const int too_many[2] = {2, 2};
              refused(DRI_Distribution_create(data, group, too_many, parts, nullptr, &distribution), DRI_ERR_MISMATCH,
                      "all dimensions is 4, and the group has 2 ranks");
              ok(DRI_Layout_create_nd(1, 0, nullptr, nullptr, &layout));
              refused(DRI_Distribution_create(data, group, processes, parts, layout, &distribution), DRI_ERR_MISMATCH,
                      "the layout has 1 dimension, the data 2");
              ok(DRI_Distribution_create(data, group, processes, parts, nullptr, &distribution));
              DRI_Bufferset* buffers = nullptr;
              refused(DRI_Bufferset_system_create(0, distribution, &buffers), DRI_ERR_ARGUMENT, "0; 1 to 256");
              void* const none[1] = {nullptr};
              refused(DRI_Bufferset_user_create(1, none, nullptr, distribution, &buffers), DRI_ERR_ARGUMENT, "NULL");
              refused(DRI_Bufferset_user_create(1, nullptr, nullptr, distribution, &buffers), DRI_ERR_ARGUMENT,
                      "memory is NULL");
              DRI_Channel* named = nullptr;
              refused(DRI_Reorg_create_user(DRI_LIBRARY_NATIVE, DRI_SEND, "rows", DRI_FLOAT, distribution, 1, nullptr,
                                            nullptr, &named),
                      DRI_ERR_ARGUMENT, "memory is NULL");
              ok(DRI_Bufferset_system_create(1, distribution, &buffers));
              DRI_Channel *send = nullptr, *receive = nullptr, *other = nullptr;
              refused(DRI_Channel_create_send(-1, distribution, buffers, &send), DRI_ERR_ARGUMENT, "-1");
              ok(DRI_Channel_create_send(9, distribution, buffers, &send));
              refused(DRI_Channel_create_recv(9, distribution, buffers, &receive), DRI_ERR_ORDER, "another channel");
              DRI_Bufferset* more = nullptr;
              ok(DRI_Bufferset_system_create(2, distribution, &more));
              refused(DRI_Channel_create_send(9, distribution, more, &other), DRI_ERR_ORDER, "that end of channel 9");
              ok(DRI_Channel_create_recv(9, distribution, more, &receive));
              DRI_Buffer_Id* buffer = nullptr;
              int flag = 5;
              refused(DRI_Channel_get(send, &buffer), DRI_ERR_ORDER, "not connected");
              refused(DRI_Channel_puttest(send, &buffer, &flag), DRI_ERR_ORDER, "not connected");
              refused(DRI_Finalize(), DRI_ERR_ORDER, "2 channels exist: destroy them");
              ok(DRI_Channel_connect(send));
              refused(DRI_Channel_connect(send), DRI_ERR_ORDER, "already");
              ok(DRI_Channel_connect(receive));
              refused(DRI_Channel_connect(receive), DRI_ERR_ORDER, "already");
              refused(DRI_Channel_put(send, &buffer), DRI_ERR_HANDLE, "NULL");
              refused(DRI_Channel_get(send, nullptr), DRI_ERR_ARGUMENT, "buffer is NULL");
              ok(DRI_Channel_get(send, &buffer));
              DRI_Buffer_Id* extra = nullptr;
              refused(DRI_Channel_get(send, &extra), DRI_ERR_ORDER, "no buffer of channel 9 is free (1 held of 1)");
              refused(DRI_Channel_gettest(send, &extra, &flag), DRI_ERR_ORDER, "(1 held of 1)");
              require(extra == nullptr, "an output of a refused call");
              refused(DRI_Channel_put(receive, &buffer), DRI_ERR_MISMATCH,
                      "a buffer of the sending end of channel 9 is put on the receiving end of channel 9");
              DRI_Buffer_Id* const held = buffer;
              ok(DRI_Channel_put(send, &buffer));
              void* memory = nullptr;
              refused(DRI_Buffer_get_memory(held, &memory, nullptr), DRI_ERR_ORDER, "not held");
              buffer = held;
              refused(DRI_Channel_put(send, &buffer), DRI_ERR_ORDER, "not held");
              ok(DRI_Channel_get(send, &buffer));
              ok(DRI_Channel_put(send, &buffer));
              DRI_Buffer_Id *first = nullptr, *second = nullptr;
              ok(DRI_Channel_get(receive, &first));
              ok(DRI_Channel_get(receive, &second));
              refused(DRI_Channel_put(receive, &second), DRI_ERR_ORDER, "held longer");
              ok(DRI_Channel_put(receive, &first));
              ok(DRI_Channel_put(receive, &second));
              DRI_Channel* const gone = send;
              ok(DRI_Channel_destroy(&send));
              send = gone;
              refused(DRI_Channel_destroy(&send), DRI_ERR_HANDLE, "destroyed");
              refused(DRI_Channel_get(gone, &buffer), DRI_ERR_HANDLE, "destroyed");
              refused(DRI_Buffer_get_memory(held, &memory, nullptr), DRI_ERR_HANDLE, "destroyed");
              refused(DRI_Finalize(), DRI_ERR_ORDER, "1 channel exists: destroy it");
              ok(DRI_Channel_destroy(&receive));
              ok(DRI_Finalize());
              refused(DRI_Group_create_world(&group), DRI_ERR_ORDER, "DRI_Finalize");
            }),
      "");
}

// Both wait, give up and wait again until each has seen where the other one is, or was.
TEST_P(DriOfOneProcess, channels_that_do_not_meet_are_named) {
  setenv("TRANSHIP_TIMEOUT", "0.05", 1);
  std::atomic<int> seen = 0;
  EXPECT_EQ(fault(
                2,
                [&] {
                  ok(DRI_Init(nullptr, nullptr));
                  const int rank = rank_of_world();
                  DRI_Channel* channel = end_of(7 + rank, rank, 1);
                  bool has_seen = false;
                  do {
                    const int code = DRI_Channel_connect(channel);
                    refused(code, DRI_ERR_TIMEOUT, rank == 0 ? "channel 7: " : "channel 8: ");
                    if (has_seen || !std::strstr(DRI_Error_detail(), rank == 0 ? "at 'channel 8'" : "at 'channel 7'"))
                      continue;
                    has_seen = true;
                    ++seen;
                  } while (seen < 2);
                  ok(DRI_Channel_destroy(&channel));
                  ok(DRI_Finalize());
                },
                1),
            "");
  unsetenv("TRANSHIP_TIMEOUT");
}

// What views are made of: each key keeps one pointer; puts are announced; the channel's end releases all, in order.
TEST_P(Dri, pointers_are_kept_with_a_buffer_until_its_channel_ends) {
  EXPECT_EQ(fault(1,
                  [] {
                    ok(DRI_Init(nullptr, nullptr));
                    DRI_Buffer_Id* buffer = nullptr;
                    DRI_Channel* channel = created({.id = 1, .side = DRI_SEND, .ranks = {0}});
                    DRI_Channel* other = created({.id = 1, .side = DRI_RECV, .ranks = {0}});
                    ok(DRI_Channel_connect(channel));
                    ok(DRI_Channel_connect(other));
                    ok(DRI_Channel_get(channel, &buffer));
                    using Log = std::vector<std::string>;
                    struct Kept {
                      Log* log;
                      std::string name;
                      static void put(void* self) {
                        static_cast<Kept*>(self)->log->push_back("put " + static_cast<Kept*>(self)->name);
                      }
                      static void end(void* self) {
                        static_cast<Kept*>(self)->log->push_back("end " + static_cast<Kept*>(self)->name);
                      }
                    };
                    Log log;
                    Kept a{&log, "a"}, b{&log, "b"}, c{&log, "c"};
                    ok(DRI_Buffer_attach(buffer, 9, &a, Kept::put, Kept::end));
                    ok(DRI_Buffer_attach(buffer, 3, &b, nullptr, Kept::end));
                    ok(DRI_Buffer_attach(buffer, 5, &c, Kept::put, Kept::end));
                    require(DRI_Buffer_attached(buffer, 3) == &b && DRI_Buffer_attached(buffer, 4) == nullptr, "keys");
                    ok(DRI_Buffer_attach(buffer, 5, nullptr, nullptr, nullptr));
                    ok(DRI_Channel_put(channel, &buffer));
                    require(DRI_Buffer_attached(buffer, 3) == nullptr, "a NULL handle");
                    ok(DRI_Channel_get(other, &buffer));
                    ok(DRI_Channel_put(other, &buffer));
                    ok(DRI_Channel_destroy(&channel));
                    require(log == Log({"end c", "put a", "end b", "end a"}), "log [{}]", fmt::join(log, ", "));
                    ok(DRI_Channel_destroy(&other));
                    ok(DRI_Finalize());
                  }),
            "");
}

TEST_P(Dri, sides_that_do_not_fit_are_named_on_both) {
  EXPECT_EQ(fault(2,
                  [] {
                    ok(DRI_Init(nullptr, nullptr));
                    const int rank = rank_of_world();
                    DRI_Channel* channel = created({.id = 1,
                                                    .side = rank == 0 ? DRI_SEND : DRI_RECV,
                                                    .ranks = {rank},
                                                    .extent = 4 + rank,
                                                    .type = DRI_INTEGER});
                    refused(DRI_Channel_connect(channel), DRI_ERR_MISMATCH, "5");
                    ok(DRI_Channel_destroy(&channel));
                    ok(DRI_Finalize());
                  }),
            "");
}

/// Gets a buffer of one float, which is `value` from the sender on, and puts it.
void pass(DRI_Channel* channel, int rank, float value) {
  DRI_Buffer_Id* buffer = nullptr;
  void* memory = nullptr;
  ok(DRI_Channel_get(channel, &buffer));
  ok(DRI_Buffer_get_memory(buffer, &memory, nullptr));
  float& at = *static_cast<float*>(memory);
  if (rank == 0) at = value;
  require(at == value, "{} is not {}", at, value);
  ok(DRI_Channel_put(channel, &buffer));
}

// Two of three ranks, so that lines do not join the whole world.
TEST_P(Dri, many_channels_and_many_frames) {
  EXPECT_EQ(fault(
                3,
                [&] {
                  ok(DRI_Init(nullptr, nullptr));
                  const int rank = rank_of_world(), frames = GetParam() == On::sim ? 300 : 10000;
                  if (rank < 2) {
                    std::vector<DRI_Channel*> channels;
                    for (int id = 0; id < 200; ++id) {
                      channels.push_back(end_of(id, rank, 1 + id % 3));
                      ok(DRI_Channel_connect(channels.back()));
                    }
                    for (int frame = 0; frame < 3; ++frame)
                      for (int id = 0; id < 200; ++id) pass(channels[std::size_t(id)], rank, float(1000 * frame + id));
                    for (int id = 0; id < 199; ++id) ok(DRI_Channel_destroy(&channels[std::size_t(id)]));
                    for (int frame = 0; frame < frames; ++frame) pass(channels.back(), rank, float(frame));
                    ok(DRI_Channel_destroy(&channels.back()));
                  }
                  ok(DRI_Finalize());
                },
                1),
            "");
}

// Ends that are destroyed while the other one is at work: it learns who has left, and can end.
TEST_P(Dri, ends_that_go_in_flight_are_named) {
  EXPECT_EQ(fault(2,
                  [] {
                    ok(DRI_Init(nullptr, nullptr));
                    const int rank = rank_of_world();
                    DRI_Buffer_Id* buffer = nullptr;
                    // The receiver goes after two frames, with the second one in its hands.
                    DRI_Channel* channel = end_of(1, rank, 1);
                    ok(DRI_Channel_connect(channel));
                    pass(channel, rank, 5);
                    if (rank == 1) {
                      ok(DRI_Channel_get(channel, &buffer));
                      ok(DRI_Channel_destroy(&channel));
                      void* memory = nullptr;
                      refused(DRI_Buffer_get_memory(buffer, &memory, nullptr), DRI_ERR_HANDLE, "destroyed");
                    } else {
                      int code = DRI_SUCCESS;
                      for (int frame = 0; frame < 10 && code == DRI_SUCCESS; ++frame) {
                        code = DRI_Channel_get(channel, &buffer);
                        if (code == DRI_SUCCESS) ok(DRI_Channel_put(channel, &buffer));
                      }
                      refused(code, DRI_ERR_PEER, "rank 1 has left");
                      refused(DRI_Channel_destroy(&channel), DRI_ERR_PEER, "rank 1 has left");
                      require(channel == nullptr, "the handle is gone");
                    }
                    // The sender goes without a frame that the receiver waits for.
                    channel = end_of(2, rank, 2);
                    ok(DRI_Channel_connect(channel));
                    if (rank == 0)
                      ok(DRI_Channel_get(channel, &buffer));
                    else
                      refused(DRI_Channel_get(channel, &buffer), DRI_ERR_END, "rank 0 has left");
                    ok(DRI_Channel_destroy(&channel));
                    ok(DRI_Finalize());
                  }),
            "");
}

// A receiver gets all frames and then the end of the stream, by either form of get, as often as it asks.
TEST_P(Dri, a_stream_ends_with_a_code_of_its_own) {
  EXPECT_EQ(fault(2,
                  [] {
                    ok(DRI_Init(nullptr, nullptr));
                    const int rank = rank_of_world();
                    for (const bool tests : {false, true}) {
                      DRI_Channel* channel = end_of(1, rank, 2);
                      ok(DRI_Channel_connect(channel));
                      for (int frame = 0; frame < 7; ++frame) pass(channel, rank, float(frame));
                      for (int again = 0; rank == 1 && again < 2; ++again) {
                        DRI_Buffer_Id* buffer = nullptr;
                        int flag = 0, code = DRI_SUCCESS;
                        do
                          code =
                              tests ? DRI_Channel_gettest(channel, &buffer, &flag) : DRI_Channel_get(channel, &buffer);
                        while (code == DRI_SUCCESS && flag == 0 && buffer == nullptr);
                        refused(code, DRI_ERR_END, "channel 1: the stream has ended");
                      }
                      ok(DRI_Channel_destroy(&channel));
                    }
                    ok(DRI_Finalize());
                  }),
            "");
}

// A sender that fails is no end of the stream: its body returns a code, or it never destroys its end.
TEST_P(DriOfOneProcess, a_sender_that_fails_does_not_end_the_stream) {
  for (const bool returns_a_code : {false, true}) {
    int code = DRI_SUCCESS;
    (void)fault(
        2,
        [&] {
          ok(DRI_Init(nullptr, nullptr));
          const int rank = rank_of_world();
          DRI_Channel* channel = end_of(1, rank, 1);
          ok(DRI_Channel_connect(channel));
          if (rank == 0) {
            pass(channel, rank, 1);
            if (returns_a_code) throw Error(ErrorCode::internal, "the sender fails");
            return;
          }
          do {
            DRI_Buffer_Id* buffer = nullptr;
            code = DRI_Channel_get(channel, &buffer);
            if (code == DRI_SUCCESS) ok(DRI_Channel_put(channel, &buffer));
          } while (code == DRI_SUCCESS);
        },
        3);
    EXPECT_EQ(code, DRI_ERR_PEER) << DRI_Error_detail();
  }
}

// A thread that is no rank is refused, whatever it holds.
TEST(DriRanks, are_used_by_their_own_thread) {
  EXPECT_EQ(fault(On::threads, 2, 1,
                  [] {
                    ok(DRI_Init(nullptr, nullptr));
                    const int rank = rank_of_world();
                    DRI_Channel* channel = end_of(1, rank, 1);
                    ok(DRI_Channel_connect(channel));
                    std::string wrong;
                    std::thread stranger([&] {
                      try {
                        DRI_Buffer_Id* buffer = nullptr;
                        DRI_Channel* copy = channel;
                        DRI_Group* group = nullptr;
                        refused(DRI_Channel_get(channel, &buffer), DRI_ERR_ORDER, "on this thread");
                        refused(DRI_Channel_destroy(&copy), DRI_ERR_ORDER, "on this thread");
                        refused(DRI_Group_create_world(&group), DRI_ERR_ORDER, "on this thread");
                        refused(DRI_Finalize(), DRI_ERR_ORDER, "on this thread");
                      } catch (const Error& found) {
                        wrong = found.message();
                      }
                    });
                    stranger.join();
                    require(wrong.empty(), "{}", wrong);
                    pass(channel, rank, 3);
                    ok(DRI_Channel_destroy(&channel));
                    ok(DRI_Finalize());
                  }),
            "");
}

TEST(DriRanks, that_fail_end_the_launch_with_their_code) {
  const auto fails = [](void*) { return 3; };
  EXPECT_EQ(DRI_Launch_threads(2, fails, nullptr), DRI_ERR_PROGRAM);
  EXPECT_NE(std::string(DRI_Error_detail()).find("returned 3"), std::string::npos) << DRI_Error_detail();
  const auto stays = [](void*) { return DRI_Init(nullptr, nullptr); };
  EXPECT_EQ(DRI_Launch_threads(2, stays, nullptr), DRI_ERR_PROGRAM);
  EXPECT_NE(std::string(DRI_Error_detail()).find("without DRI_Finalize"), std::string::npos) << DRI_Error_detail();
  EXPECT_EQ(DRI_Launch_threads(0, stays, nullptr), DRI_ERR_ARGUMENT);
  EXPECT_EQ(DRI_Launch_threads(1, nullptr, nullptr), DRI_ERR_ARGUMENT);
  EXPECT_STREQ(DRI_Error_string(-1), "unknown code");
}

}  // namespace
}  // namespace tranship::test
