#include <contest/one_sided.hpp>

#include <tranship/fabric/context.hpp>
#include <tranship/fabric/paired_copy.hpp>
#include <tranship/kernels/host/host_move.hpp>

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

/// Transfers by hand with our copy in the place of memcpy.
class OurCopy : public OurLimit {
 public:
  using OurLimit::OurLimit;
  void put(std::int64_t place, const Word* local) { copy(peer() + place, local); }
  void get(Word* local) { copy(local, peer()); }

 private:
  void copy(Word* to, const Word* from) const { copy_row(to, from, bytes_, copy_method(bytes_)); }
};

/// A copy from the memory of rank 0 to the memory of rank 1, by both ranks.
class Together : public Method {
 public:
  Together(World& world, const Work& work)
      : rank_(world.rank()),
        words_(work.bytes / 8),
        source_(page_aligned(world, words_)),
        target_(page_aligned(world, words_)) {}

  void write(double salt) override {
    if (rank_ == 0) fill(source_.local(), words_, Word(salt));
  }
  void spoil() override {
    if (rank_ == 1) fill(target_.local(), words_, 0);
  }
  double read() override { return rank_ == 1 ? double(sum(target_.local(), words_)) : 0; }
  std::int64_t count_wrong(double salt) override {
    return rank_ == 1 ? contest::count_wrong(target_.local(), words_, Word(salt)) : 0;
  }

 protected:
  const int rank_;
  const Index words_;
  const SymmetricArray<Word> source_, target_;
};

/// The limit of the machine for a copy from one rank to the other: each core copies a half by memcpy.
class BothCores final : public Together {
 public:
  BothCores(World& world, const Work& work)
      : Together(world, work), from_(windows_of(world, source_)[0]), to_(windows_of(world, target_)[1]) {}

  std::string name() const override { return "limit"; }
  void run() override {
    const Index middle = words_ / 2, first = rank_ == 0 ? 0 : middle, end = rank_ == 0 ? middle : words_;
    std::memcpy(to_ + first, from_ + first, std::size_t(end - first) * sizeof(Word));
  }

 private:
  Word* const from_;
  Word* const to_;
};

class Paired final : public Together {
 public:
  Paired(World& world, const Work& work) : Together(world, work), pairs_(world) {}

  std::string name() const override { return "tranship"; }
  void run() override { pairs_.copy<Word>(target_, source_, 0, 1); }

 private:
  PairedCopy pairs_;
};

}  // namespace

Methods one_sided_methods(World& world, const Work& work) {
  Methods methods;
  if (work.transfer == Transfer::together) {
    methods.push_back(std::make_unique<Paired>(world, work));
    methods.push_back(std::make_unique<BothCores>(world, work));
    return methods;
  }
  add_one_sided<OurLink>(methods, work, world.rank(), "tranship", world);
  add_one_sided<OurLimit>(methods, work, world.rank(), "limit", world);
  const bool is_large = work.repeats == 1 && (work.transfer == Transfer::put || work.transfer == Transfer::get);
  if (is_large) add_one_sided<OurCopy>(methods, work, world.rank(), "our copy by hand", world);
  return methods;
}

}  // namespace contest
