#include "tranship/fabric/shared/shared_world.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <sched.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/fabric/settings.hpp>

namespace tranship {

/// Lies at the start of the memory; zero until the maker has filled it in.
struct SharedWorld::Header {
  static constexpr std::uint64_t magic_here = 0x7472616e73686970;  // "tranship"
  static constexpr char layout_here[32] = "tranship 0.1.0 layout 5";

  std::uint64_t magic;
  char layout[32];
  /// Sizes of the following parts, in which builds of one version may differ.
  std::uint64_t board_bytes;
  std::uint64_t place_bytes;

  std::uint64_t ranks;
  std::uint64_t heap_bytes;
  std::uint64_t local_bytes;
  std::uint64_t cores;
  std::uint64_t teams;
  std::uint64_t board_ranks;
};

namespace {

using Base = std::atomic<std::uintptr_t>;
static_assert(Base::is_always_lock_free);

struct Offsets {
  std::size_t board, bases, arrivals, places, segments, stride, total;

  explicit Offsets(const SharedWorld::Shape& shape) {
    const auto ranks = static_cast<std::size_t>(shape.ranks);
    board = 256;
    bases = board + round_up(Board::size_bytes(shape.board_ranks), 64);
    arrivals = bases + round_up(ranks * sizeof(Base), 64);
    places = arrivals +
             ranks * static_cast<std::size_t>(shape.teams) * SharedWorld::arrivals_stride * sizeof(RealSync::Word);
    segments = round_up(places + ranks * static_cast<std::size_t>(shape.teams) * sizeof(MeetingPlace),
                        SharedMemory::alignment_bytes);
    std::size_t each = 0, all = 0;
    if (__builtin_add_overflow(shape.heap_bytes, shape.local_bytes, &each) ||
        __builtin_add_overflow(each, SharedMemory::alignment_bytes - 1, &each) ||
        __builtin_mul_overflow(stride = round_down(each, SharedMemory::alignment_bytes), ranks, &all) ||
        __builtin_add_overflow(segments, all, &total) || total > std::size_t(INT64_MAX))
      throw_error(ErrorCode::overflow, "{} with {} + {} each need more bytes than fit in 63 bits",
                  amount(shape.ranks, "rank"), shape.heap_bytes, amount(shape.local_bytes, "byte"));
  }
};

SharedMemory made(const SharedWorld::Shape& shape, SharedWorld::Kind kind) {
  const std::size_t bytes = Offsets(shape).total;
  return kind == SharedWorld::Kind::threads ? SharedMemory::within_process(bytes) : SharedMemory::for_processes(bytes);
}

int cores_here() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

/// Rounds sizes to whole pages and fills in the cores of this thread.
SharedWorld::Shape completed(SharedWorld::Shape shape) {
  if (shape.cores == 0) shape.cores = cores_here();
  if (shape.board_ranks == 0) shape.board_ranks = shape.ranks;
  shape.heap_bytes = round_up(shape.heap_bytes, page_bytes());
  shape.local_bytes = round_up(shape.local_bytes, page_bytes());
  return shape;
}

std::optional<std::size_t> heap_bytes_of_environment() {
  const char* text = std::getenv("TRANSHIP_HEAP");
  if (text == nullptr || *text == '\0') return std::nullopt;
  return heap_bytes_of("TRANSHIP_HEAP", text);
}

int teams_of_environment() {
  const char* text = std::getenv("TRANSHIP_TEAMS");
  return text == nullptr || *text == '\0' ? TeamSlots::count_default : teams_of("TRANSHIP_TEAMS", text);
}

}  // namespace

std::shared_ptr<SharedWorld> SharedWorld::make(const Making& making, Kind kind) {
  const int ranks = making.ranks, teams = making.teams ? *making.teams : teams_of_environment();
  if (teams < TeamSlots::count_min || teams > TeamSlots::count_max)
    throw_error(ErrorCode::invalid_use, "{} are asked for; {} to {} are possible", amount(teams, "team"),
                TeamSlots::count_min, TeamSlots::count_max);
  std::optional<std::size_t> heap_bytes = making.heap_bytes;
  const auto with = [&](std::size_t bytes) {
    const Shape shape{.ranks = ranks,
                      .heap_bytes = bytes,
                      .local_bytes = kind == Kind::processes ? bytes : 0,
                      .cores = making.cores,
                      .teams = teams,
                      .board_ranks = making.board_ranks};
    return attempt([&] { return std::make_shared<SharedWorld>(shape, kind); });
  };
  if (!heap_bytes) heap_bytes = heap_bytes_of_environment();
  const auto memory = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes();
  constexpr std::size_t all_max = std::size_t(1) << 40;
  const std::size_t wanted = heap_bytes.value_or(std::min(memory, all_max / static_cast<std::size_t>(ranks)));
  Result<std::shared_ptr<SharedWorld>> made = with(wanted);
  if (made.ok() || made.error().code() != ErrorCode::no_memory) return std::move(made).value();

  // The number of addresses is limited, or the system never grants more of them than it has memory.
  std::size_t granted = wanted / 2;
  while (granted > 0 && !with(granted).ok()) granted /= 2;
  constexpr std::size_t enough = std::size_t(16) << 20;
  if (heap_bytes || granted < enough)
    throw_error(ErrorCode::no_memory,
                "cannot make symmetric heaps of {} for each of {}: the system grants {} each ({})",
                amount(wanted, "byte"), amount(ranks, "rank"), granted, made.error().message());
  // Addresses that the heaps take are missing to the program, so half of them is left.
  return with(granted / 2).value();
}

SharedWorld::SharedWorld(const Shape& shape, Kind kind)
    : memory_(made(completed(shape), kind)), shape_(completed(shape)) {
  const Offsets at(shape_);
  memory_.obtain(0, at.places + static_cast<std::size_t>(TeamSlots::predefined * shape_.ranks) * sizeof(MeetingPlace))
      .value();
  auto& header = *reinterpret_cast<Header*>(memory_.data());
  header.magic = Header::magic_here;
  std::memcpy(header.layout, Header::layout_here, sizeof header.layout);
  header.board_bytes = Board::size_bytes(shape_.board_ranks);
  header.place_bytes = sizeof(MeetingPlace);
  header.ranks = static_cast<std::uint64_t>(shape_.ranks);
  header.heap_bytes = shape_.heap_bytes;
  header.local_bytes = shape_.local_bytes;
  header.cores = static_cast<std::uint64_t>(shape_.cores);
  header.teams = static_cast<std::uint64_t>(shape_.teams);
  header.board_ranks = static_cast<std::uint64_t>(shape_.board_ranks);
  lay_out();
}

SharedWorld::SharedWorld(int descriptor) : memory_(SharedMemory::inherited(descriptor)) {
  if (memory_.size_bytes() < sizeof(Header))
    throw_error(ErrorCode::mismatch, "descriptor {} has {}; a world has at least {}", descriptor,
                amount(memory_.size_bytes(), "byte"), sizeof(Header));
  const auto& header = *reinterpret_cast<const Header*>(memory_.data());
  if (header.magic != Header::magic_here)
    throw_error(ErrorCode::mismatch, "descriptor {} is not the memory of a world: it begins with {:016x}, not {:016x}",
                descriptor, header.magic, Header::magic_here);
  const std::string_view theirs(header.layout, strnlen(header.layout, sizeof header.layout));
  if (theirs != Header::layout_here)
    throw_error(ErrorCode::mismatch, "this program was built with \"{}\", the one that has started it with \"{}\"",
                Header::layout_here, printable(theirs, name_chars_max));
  shape_ = {.ranks = static_cast<int>(header.ranks),
            .heap_bytes = header.heap_bytes,
            .local_bytes = header.local_bytes,
            .cores = static_cast<int>(header.cores),
            .teams = static_cast<int>(header.teams),
            .board_ranks = static_cast<int>(header.board_ranks)};
  if (shape_.ranks < 1 || shape_.board_ranks < shape_.ranks || shape_.teams < TeamSlots::count_min ||
      shape_.teams > TeamSlots::count_max || header.board_bytes != Board::size_bytes(shape_.board_ranks) ||
      header.place_bytes != sizeof(MeetingPlace) || Offsets(shape_).total != memory_.size_bytes())
    throw_error(
        ErrorCode::mismatch,
        "this program shares boards of {} and meeting places of {} bytes, the one that has started it {} and {}: "
        "they were built differently",
        Board::size_bytes(shape_.board_ranks), sizeof(MeetingPlace), header.board_bytes, header.place_bytes);
  lay_out();
}

std::string SharedWorld::build() {
  return fmt::format("{}, boards of {} and meeting places of {} bytes", Header::layout_here, Board::size_bytes(1),
                     sizeof(MeetingPlace));
}

void SharedWorld::lay_out() {
  static_assert(sizeof(Header) <= 256);
  const Offsets at(shape_);
  board_.emplace(shape_.board_ranks, memory_.data() + at.board);
  bases_ = memory_.data() + at.bases;
  arrivals_ = reinterpret_cast<RealSync::Word*>(memory_.data() + at.arrivals);
  places_ = reinterpret_cast<MeetingPlace*>(memory_.data() + at.places);
  segments_ = memory_.data() + at.segments;
  stride_bytes_ = at.stride;
  std::vector<HeapAddresses::Address> heaps;
  for (Rank rank = 0; rank < shape_.ranks; ++rank)
    heaps.push_back(reinterpret_cast<HeapAddresses::Address>(heap_of(rank)));
  heaps_ = HeapAddresses(std::move(heaps));
}

void SharedWorld::obtain_slot(int slot) const {
  if (slot < TeamSlots::predefined) return;
  const auto first = static_cast<std::size_t>(reinterpret_cast<std::byte*>(&meeting_place(0, slot)) - memory_.data());
  memory_.obtain(first, static_cast<std::size_t>(shape_.ranks) * sizeof(MeetingPlace)).value();
}

Result<void> SharedWorld::obtain(Rank rank, std::size_t offset_bytes, std::size_t size_bytes) const {
  return memory_.obtain(
      place_of(rank, offset_bytes), size_bytes,
      size_bytes < Domain::sparse_bytes_min ? SharedMemory::Grant::at_once : SharedMemory::Grant::when_touched);
}
void SharedWorld::give_back(Rank rank, std::size_t offset_bytes, std::size_t size_bytes) const noexcept {
  memory_.give_back(place_of(rank, offset_bytes), size_bytes);
}
Result<void> SharedWorld::join(Rank rank, std::size_t offset_bytes, std::size_t size_bytes, void* memory) const {
  return memory_.join(place_of(rank, offset_bytes), size_bytes, memory);
}
bool SharedWorld::part(Rank rank, std::size_t offset_bytes, std::size_t size_bytes, void* memory) const noexcept {
  return memory_.part(place_of(rank, offset_bytes), size_bytes, memory);
}
std::size_t SharedWorld::place_of(Rank rank, std::size_t offset_bytes) const noexcept {
  const auto first = static_cast<std::size_t>(segments_ - memory_.data());
  return first + static_cast<std::size_t>(rank) * stride_bytes_ + offset_bytes;
}

void SharedWorld::post_base(Rank rank) noexcept {
  reinterpret_cast<Base*>(bases_)[rank].store(reinterpret_cast<std::uintptr_t>(memory_.data()),
                                              std::memory_order_release);
}
void* SharedWorld::translate(Rank rank, const void* address) const noexcept {
  const std::uintptr_t base = reinterpret_cast<const Base*>(bases_)[rank].load(std::memory_order_acquire);
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - base;
  return base != 0 && offset < memory_.size_bytes() ? memory_.data() + offset : nullptr;
}

}  // namespace tranship
