#include <contest/one_sided.hpp>

#include <tranship/fabric/context.hpp>
#include <tranship/kernels/host_move.hpp>

#include "our_methods.hpp"

namespace contest {
namespace {

using namespace tranship;

SymmetricArray<Word> page_aligned(World& world, Index words) {
  return world.allocate<Word>(words, World::Alignment{.bytes = contest::page_bytes});
}

class OurLink {
 public:
  OurLink(const WindowLayout& layout, World& world)
      : context_(world.context()),
        world_(world),
        peer_(world.size() - 1 - world.rank()),
        words_(layout.words),
        window_(page_aligned(world, layout.size)),
        data_(window_.slice(0, layout.words)),
        signal_(window_.slice(layout.signal, 1)) {}

  Word* window() const { return window_.local(); }

  void p(Word value) { context_.p(data_, value, peer_); }
  void put(std::int64_t place, const Word* local) { context_.put(window_.slice(place, words_), from(local), peer_); }
  void quiet() { context_.quiet(); }
  Word g() { return context_.g(data_, peer_); }
  void get(Word* local) { context_.get({local, std::size_t(words_)}, data_, peer_); }
  void add(Word value) { context_.add(data_, value, peer_); }
  Word fetch_add(Word value) { return context_.fetch_add(data_, value, peer_); }

  void send(const Word* local, Word turn) {
    context_.put_signal(data_, from(local), signal_, turn, SignalOp::set, peer_);
  }
  void receive(Word turn) { await(turn); }
  void signal(Word turn) { context_.signal(signal_, turn, SignalOp::set, peer_); }
  void await(Word turn) { context_.signal_wait(signal_, Comparison::equal, turn); }
  void barrier() { world_.barrier(); }

 private:
  std::span<const Word> from(const Word* local) const { return {local, std::size_t(words_)}; }

  Context& context_;
  World& world_;
  const Rank peer_;
  const Index words_;
  const SymmetricArray<Word> window_;
  const Symmetric<Word> data_, signal_;
};

std::vector<Word*> windows_of(World& world, Symmetric<Word> array) {
  std::vector<Word*> windows;
  for (Rank rank = 0; rank < world.size(); ++rank) windows.push_back(world.context().peer_array(array, rank).data());
  return windows;
}

/// The limit: the same memory, used by hand.
class OurLimit : private SymmetricArray<Word>, public ByHand {
 public:
  OurLimit(const WindowLayout& layout, World& world)
      : SymmetricArray<Word>(page_aligned(world, layout.size)),
        ByHand(layout, windows_of(world, *this), world.rank()),
        bytes_(layout.words * Index(sizeof(Word))) {}

 protected:
  const Index bytes_;
};

/// The same with our copy in the place of memcpy.
class OurCopy : public OurLimit {
 public:
  using OurLimit::OurLimit;
  void put(std::int64_t place, const Word* local) { copy(peer() + place, local); }
  void get(Word* local) { copy(local, peer()); }

 private:
  void copy(Word* to, const Word* from) const {
    const HostWay way = host_way(bytes_);
    row_copy(bytes_, way)(Rows{.row_bytes = bytes_}, from, to);
    order_stores(way);
  }
};

/// As fast as the machine copies from one rank to the other: each core copies a half by memcpy.
class BothCores final : public Method {
 public:
  BothCores(World& world, const Work& work)
      : words_(work.bytes / 8),
        rank_(world.rank()),
        source_rank_(work.transfer == Transfer::put ? 0 : 1),
        source_array_(page_aligned(world, words_)),
        target_array_(page_aligned(world, words_)),
        source_(windows_of(world, source_array_)[std::size_t(source_rank_)]),
        target_(windows_of(world, target_array_)[std::size_t(1 - source_rank_)]) {}

  std::string name() const override { return "memcpy by both"; }
  void write(double salt) override {
    if (rank_ == source_rank_) fill(source_, words_, Word(salt));
  }
  void spoil() override {
    if (rank_ != source_rank_) fill(target_, words_, 0);
  }
  double read() override { return rank_ != source_rank_ ? double(sum(target_, words_)) : 0; }
  std::int64_t count_wrong(double salt) override {
    return rank_ != source_rank_ ? contest::count_wrong(target_, words_, Word(salt)) : 0;
  }
  void run() override {
    const Index middle = words_ / 2, first = rank_ == 0 ? 0 : middle, end = rank_ == 0 ? middle : words_;
    std::memcpy(target_ + first, source_ + first, std::size_t(end - first) * sizeof(Word));
  }

 private:
  const Index words_;
  const int rank_, source_rank_;
  const SymmetricArray<Word> source_array_, target_array_;
  Word* const source_;
  Word* const target_;
};

}  // namespace

Methods one_sided_methods(World& world, const Work& work) {
  Methods methods;
  add_one_sided<OurLink>(methods, work, world.rank(), "tranship", world);
  add_one_sided<OurLimit>(methods, work, world.rank(), "limit", world);
  const bool is_large = work.repeats == 1 && (work.transfer == Transfer::put || work.transfer == Transfer::get);
  if (is_large) {
    add_one_sided<OurCopy>(methods, work, world.rank(), "our copy by hand", world);
    methods.push_back(std::make_unique<BothCores>(world, work));
  }
  return methods;
}

}  // namespace contest
