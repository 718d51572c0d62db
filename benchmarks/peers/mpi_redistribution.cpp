// Redistributions with MPI: typed messages, Alltoallw with types, Alltoallv packed by hand, loops over a shared window.
#include <algorithm>
#include <vector>

#include <contest/loops.hpp>
#include <contest/methods.hpp>

#include "mpi_methods.hpp"
#include "mpi_window.hpp"

namespace contest {
namespace {

constexpr int element_bytes = sizeof(double);

/// The cells of `runs` in one dimension, `stride` elements apart, each made of `inner`. One run of unit-stride elements
/// is a plain piece.
MPI_Datatype type_along(const std::vector<Run>& runs, Side side, std::int64_t stride, MPI_Datatype inner) {
  std::vector<int> counts;
  std::vector<MPI_Aint> offsets;
  MPI_Datatype stepped = MPI_DATATYPE_NULL, type = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(inner, 0, MPI_Aint(stride * element_bytes), &stepped);
  for (const Run& run : runs) {
    counts.push_back(int(run.length));
    offsets.push_back(MPI_Aint((side == Side::from ? run.from : run.to) * stride * element_bytes));
  }
  MPI_Type_create_hindexed(int(runs.size()), counts.data(), offsets.data(), stepped, &type);
  MPI_Type_free(&stepped);
  return type;
}

/// The type of the cells that two ranks share, on one side, in row-major order: a subarray type where they are a box of
/// an array in that order, else nested index types.
MPI_Datatype type_of(const Work& work, const Local& local, const Shared& shared, Side side) {
  bool is_box = side == Side::from || work.order == Order::same;
  for (int d = 0; d < work.dims; ++d) is_box = is_box && shared.runs[d].size() == 1;
  MPI_Datatype type = MPI_DOUBLE;
  if (is_box) {
    int extents[dims_max], sub_extents[dims_max], starts[dims_max];
    for (int d = 0; d < work.dims; ++d) {
      const Run& run = shared.runs[d][0];
      extents[d] = int(local.extents[d]);
      sub_extents[d] = int(run.length);
      starts[d] = int(side == Side::from ? run.from : run.to);
    }
    MPI_Type_create_subarray(work.dims, extents, sub_extents, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
  } else {
    for (int d = work.dims - 1; d >= 0; --d) {
      const MPI_Datatype outer = type_along(shared.runs[d], side, local.strides[d], type);
      if (type != MPI_DOUBLE) MPI_Type_free(&type);
      type = outer;
    }
  }
  MPI_Type_commit(&type);
  return type;
}

/// Both sides of every message of a rank; types of empty messages are MPI_DOUBLE with count 0.
struct Types {
  Types(const Work& work, int rank) {
    const Local from = local_of(work, Side::from, rank), to = local_of(work, Side::to, rank);
    for (int other = 0; other < work.ranks; ++other) {
      add(sends, send_counts, work, from, shared_cells(work, rank, other), Side::from);
      add(receives, receive_counts, work, to, shared_cells(work, other, rank), Side::to);
    }
  }
  ~Types() {
    for (auto* list : {&sends, &receives})
      for (MPI_Datatype& type : *list)
        if (type != MPI_DOUBLE) MPI_Type_free(&type);
  }
  static void add(std::vector<MPI_Datatype>& types, std::vector<int>& counts, const Work& work, const Local& local,
                  const Shared& shared, Side side) {
    counts.push_back(shared.cells > 0);
    types.push_back(shared.cells > 0 ? type_of(work, local, shared, side) : MPI_DOUBLE);
  }

  std::vector<MPI_Datatype> sends, receives;
  std::vector<int> send_counts, receive_counts;
};

/// Methods that work on the same plain memory share it.
struct Arrays {
  Arrays(const Work& work, int rank)
      : source(memory(local_of(work, Side::from, rank).size)), target(memory(local_of(work, Side::to, rank).size)) {}
  Memory source, target;
};

class PlainMethod : public RedistributionMethod {
 public:
  PlainMethod(const Work& work, int rank, std::shared_ptr<Arrays> arrays)
      : RedistributionMethod(work, rank), arrays_(std::move(arrays)) {
    use(arrays_->source.get(), arrays_->target.get());
  }

 private:
  std::shared_ptr<Arrays> arrays_;
};

class TypedMessages final : public PlainMethod {
 public:
  TypedMessages(const Work& work, int rank, std::shared_ptr<Arrays> arrays)
      : PlainMethod(work, rank, std::move(arrays)), types_(work, rank) {}
  std::string name() const override { return "types Isend/Irecv"; }
  void run() override {
    std::vector<MPI_Request> requests;
    for (int other = 0; other < work_.ranks; ++other)
      if (types_.receive_counts[other])
        MPI_Irecv(target_, 1, types_.receives[other], other, 0, MPI_COMM_WORLD, &requests.emplace_back());
    for (int step = 0; step < work_.ranks; ++step) {
      const int other = (rank_ + step) % work_.ranks;
      if (types_.send_counts[other])
        MPI_Isend(source_, 1, types_.sends[other], other, 0, MPI_COMM_WORLD, &requests.emplace_back());
    }
    MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }

 private:
  Types types_;
};

class Alltoallw final : public PlainMethod {
 public:
  Alltoallw(const Work& work, int rank, std::shared_ptr<Arrays> arrays)
      : PlainMethod(work, rank, std::move(arrays)), types_(work, rank), zeros_(work.ranks, 0) {}
  std::string name() const override { return "Alltoallw"; }
  void run() override {
    MPI_Alltoallw(source_, types_.send_counts.data(), zeros_.data(), types_.sends.data(), target_,
                  types_.receive_counts.data(), zeros_.data(), types_.receives.data(), MPI_COMM_WORLD);
  }

 private:
  Types types_;
  std::vector<int> zeros_;
};

/// Copies the cells that two ranks share; `from` and `to` are whole local arrays.
void copy_shared(const Work& work, const Shared& shared, const Local& from_local, const double* from,
                 const Local& to_local, double* to) {
  const int last = work.dims - 1;
  if (work.order == Order::transposed) {
    for (const Run& columns : shared.runs[1])
      for (const Run& rows : shared.runs[0])
        transpose(from + rows.from * from_local.strides[0] + columns.from, from_local.strides[0],
                  to + rows.to + columns.to * to_local.strides[1], to_local.strides[1], rows.length, columns.length);
    return;
  }
  const auto copy_plane = [&](int d, std::int64_t from_offset, std::int64_t to_offset) {
    for (const Run& rows : shared.runs[d])
      for (std::int64_t i = 0; i < rows.length; ++i)
        for (const Run& row : shared.runs[last])
          std::memcpy(to + to_offset + (rows.to + i) * to_local.strides[d] + row.to,
                      from + from_offset + (rows.from + i) * from_local.strides[d] + row.from,
                      std::size_t(row.length) * element_bytes);
  };
  if (work.dims == 2) return copy_plane(0, 0, 0);
  for (const Run& planes : shared.runs[0])
    for (std::int64_t i = 0; i < planes.length; ++i)
      copy_plane(1, (planes.from + i) * from_local.strides[0], (planes.to + i) * to_local.strides[0]);
}

/// A message as a dense local array, row-major over the shared cells.
struct Packed {
  Shared shared;  ///< runs of the side that is not packed; the runs of the packed side are dense
  Local local;
};
Packed packed(const Work& work, Shared shared, Side packed_side) {
  Packed out;
  out.local.size = shared.cells;
  std::int64_t stride = 1;
  for (int d = work.dims - 1; d >= 0; --d) {
    std::int64_t at = 0;
    for (Run& run : shared.runs[d]) {
      (packed_side == Side::from ? run.from : run.to) = at;
      at += run.length;
    }
    out.local.extents[d] = at;
    out.local.strides[d] = stride;
    stride *= at;
  }
  out.shared = std::move(shared);
  return out;
}

class PackedAlltoallv final : public PlainMethod {
 public:
  PackedAlltoallv(const Work& work, int rank, std::shared_ptr<Arrays> arrays)
      : PlainMethod(work, rank, std::move(arrays)), packing_(work) {
    packing_.order = Order::same;
    int send_at = 0, receive_at = 0;
    for (int other = 0; other < work.ranks; ++other) {
      sends_.push_back(packed(work, shared_cells(work, rank, other), Side::to));
      receives_.push_back(packed(work, shared_cells(work, other, rank), Side::from));
      // Cells that stay on this rank are copied directly.
      send_counts_.push_back(other == rank ? 0 : int(sends_.back().local.size));
      receive_counts_.push_back(other == rank ? 0 : int(receives_.back().local.size));
      send_offsets_.push_back(send_at), receive_offsets_.push_back(receive_at);
      send_at += send_counts_.back(), receive_at += receive_counts_.back();
    }
    kept_ = shared_cells(work, rank, rank);
    outgoing_ = memory(send_at);
    incoming_ = memory(receive_at);
  }
  std::string name() const override { return "packed Alltoallv"; }
  void run() override {
    for (int other = 0; other < work_.ranks; ++other)
      if (send_counts_[other])
        copy_shared(packing_, sends_[other].shared, from_, source_, sends_[other].local,
                    outgoing_.get() + send_offsets_[other]);
    MPI_Alltoallv(outgoing_.get(), send_counts_.data(), send_offsets_.data(), MPI_DOUBLE, incoming_.get(),
                  receive_counts_.data(), receive_offsets_.data(), MPI_DOUBLE, MPI_COMM_WORLD);
    if (kept_.cells) copy_shared(work_, kept_, from_, source_, to_, target_);
    for (int other = 0; other < work_.ranks; ++other)
      if (receive_counts_[other])
        copy_shared(work_, receives_[other].shared, receives_[other].local, incoming_.get() + receive_offsets_[other],
                    to_, target_);
  }

 private:
  Work packing_;
  std::vector<Packed> sends_, receives_;
  std::vector<int> send_counts_, receive_counts_, send_offsets_, receive_offsets_;
  Shared kept_;
  Memory outgoing_, incoming_;
};

class WindowLoops final : public RedistributionMethod {
 public:
  WindowLoops(const Work& work, int rank) : RedistributionMethod(work, rank), window_(from_.size + to_.size) {
    use(window_.of(rank), window_.of(rank) + from_.size);
    for (int other = 0; other < work.ranks; ++other) {
      wanted_.push_back(shared_cells(work, other, rank));
      theirs_.push_back(local_of(work, Side::from, other));
      bases_.push_back(window_.of(other));
    }
  }
  std::string name() const override { return "window"; }
  void run() override {
    window_.wait_for_all();  // every source is written
    for (int step = 0; step < work_.ranks; ++step) {
      const int other = (rank_ + step) % work_.ranks;
      if (wanted_[other].cells) copy_shared(work_, wanted_[other], theirs_[other], bases_[other], to_, target_);
    }
    window_.wait_for_all();  // every source has been read
  }

 private:
  SharedWindow window_;
  std::vector<Shared> wanted_;
  std::vector<Local> theirs_;
  std::vector<const double*> bases_;
};

}  // namespace

Methods mpi_redistribution_methods(const Work& work, int rank) {
  Methods methods;
  const auto arrays = std::make_shared<Arrays>(work, rank);
  methods.push_back(std::make_unique<TypedMessages>(work, rank, arrays));
  methods.push_back(std::make_unique<Alltoallw>(work, rank, arrays));
  methods.push_back(std::make_unique<PackedAlltoallv>(work, rank, arrays));
  methods.push_back(std::make_unique<WindowLoops>(work, rank));
  return methods;
}

}  // namespace contest
