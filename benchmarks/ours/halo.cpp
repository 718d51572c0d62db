#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "our_methods.hpp"

namespace contest {
namespace {

namespace ts = tranship;

class Halo final : public HaloMethod {
 public:
  Halo(const Work& work, ts::World& world) : HaloMethod(work, world.rank()) {
    std::vector<ts::ArrayRef> arrays;
    Fields fields;
    for (int k = 0; k < work.fields; ++k) {
      const ts::Array<double> array(world, distribution_of(work, Side::from));
      arrays.push_back(array);
      fields.push_back(array.data());
    }
    use(std::move(fields));
    exchange_ = std::make_unique<ts::HaloExchange>(arrays);
  }
  std::string name() const override { return "tranship"; }
  void run() override { (*exchange_)(); }
  const Fields& fields() const { return fields_; }

 private:
  std::unique_ptr<ts::HaloExchange> exchange_;
};

/// One pointer for each field of every rank.
std::vector<std::vector<const double*>> fields_of_all(ts::World& world, const Fields& mine) {
  std::vector<std::vector<const double*>> all(std::size_t(world.size()));
  for (const double* field : mine) {
    const auto addresses = world.all_gather(reinterpret_cast<std::uintptr_t>(field));
    for (ts::Rank rank = 0; rank < world.size(); ++rank)
      all[std::size_t(rank)].push_back(
          static_cast<const double*>(world.reach(rank, reinterpret_cast<const void*>(addresses[std::size_t(rank)]))));
  }
  return all;
}

/// The limit of the machine: libc's memcpy of `cells` cells of each owner's fields, in long pieces that are evenly
/// spread over them, as ghosts are. The fields are those of the exchange and are rewritten in the same way; the target
/// is read as ghosts are.
class Straight final : public HaloMethod {
 public:
  /// `cells` has a number for each owner: the cells that are copied from each of its fields.
  Straight(const Work& work, int rank, std::string name, const Fields& mine,
           const std::vector<std::vector<const double*>>& all, const std::vector<std::int64_t>& cells)
      : HaloMethod(work, rank), name_(std::move(name)) {
    use(mine);
    constexpr std::int64_t line = 8, piece_max = 4096;
    const auto in_lines = [](std::int64_t elements) { return (elements + line - 1) / line * line; };
    for (const std::int64_t count : cells) size_ += in_lines(count) * work.fields;
    target_ = memory(size_);
    double* to = target_.get();
    for (std::size_t owner = 0; owner < all.size(); ++owner)
      for (const double* field : all[owner]) {
        const std::int64_t pieces = (cells[owner] + piece_max - 1) / piece_max;
        for (std::int64_t p = 0; p < pieces; ++p) {
          const std::int64_t length = std::min(piece_max, cells[owner] - p * piece_max);
          const std::int64_t room = field_.size - std::min(piece_max, cells[owner]);
          const std::int64_t from = pieces > 1 ? room * p / (pieces - 1) / line * line : 0;
          pieces_.push_back({to + p * piece_max, field + from, std::size_t(length) * sizeof(double)});
        }
        to += in_lines(cells[owner]);
      }
    spoil();
  }
  std::string name() const override { return name_; }
  void spoil() override { std::fill_n(target_.get(), size_, unwritten); }
  double read() override { return sum(target_.get(), size_); }
  /// Owners may have rewritten their fields by now, so this only checks that every element was written.
  std::int64_t count_wrong(double) override {
    std::int64_t wrong = 0;
    for (const Piece& piece : pieces_)
      wrong += std::count(piece.to, piece.to + piece.bytes / sizeof(double), unwritten);
    return wrong;
  }
  void run() override {
    for (const Piece& piece : pieces_) std::memcpy(piece.to, piece.from, piece.bytes);
  }

 private:
  static constexpr double unwritten = -2;  // no cell and no spoilt ghost
  struct Piece {
    double* to;
    const double* from;
    std::size_t bytes;
  };
  std::string name_;
  std::int64_t size_ = 0;
  Memory target_;
  std::vector<Piece> pieces_;
};

std::vector<std::int64_t> payload_of_owners(const Work& work, int rank) {
  std::vector<std::int64_t> cells(std::size_t(work.ranks), 0);
  for (const Border& border : borders_of(work, rank)) cells[std::size_t(border.neighbour)] += border.takes.cells();
  return cells;
}

/// Cells for a copy that touches as many lines as the exchange: a copy reads and writes each of its lines, so it copies
/// half as many lines as the exchange reads and writes together.
std::vector<std::int64_t> lines_of_owners(const Work& work, int rank) {
  const TouchedLines touched = touched_lines(work, rank);
  const std::int64_t reads = std::accumulate(touched.reads.begin(), touched.reads.end(), std::int64_t{0});
  std::vector<std::int64_t> cells;
  for (const std::int64_t of_owner : touched.reads) {
    const double lines = double(of_owner) * double(reads + touched.writes) / double(2 * reads) / work.fields;
    cells.push_back(std::int64_t(lines) * 8);
  }
  return cells;
}

}  // namespace

Methods halo_methods(ts::World& world, const Work& work) {
  const int rank = world.rank();
  auto halo = std::make_unique<Halo>(work, world);
  const Fields mine = halo->fields();
  const auto all = fields_of_all(world, mine);
  Methods methods;
  methods.push_back(std::move(halo));
  methods.push_back(std::make_unique<Straight>(work, rank, "limit", mine, all, payload_of_owners(work, rank)));
  methods.push_back(std::make_unique<Straight>(work, rank, "lines", mine, all, lines_of_owners(work, rank)));
  return methods;
}

}  // namespace contest
