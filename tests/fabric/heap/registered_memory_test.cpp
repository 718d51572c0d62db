// Memory that a program registers: whatever is mapped there, it becomes symmetric as was promised, or every rank throws
// and nothing has changed.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/base/pages.hpp>
#include <tranship/base/random.hpp>
#include <tranship/fabric/context.hpp>

#include "support/ranks.hpp"

namespace tranship::test {
namespace {

using ::testing::Combine;
using ::testing::Values;

class Registered : public OnRanks {
 public:
  /// Where the heaps lie in a file that all ranks have mapped.
  bool has_file() const { return are_processes(on()) || on() == On::hosts; }
};
INSTANTIATE_TEST_SUITE_P(
    On, Registered,
    Combine(Values(On::threads, On::processes, On::sim, On::messaged, On::hosts, On::apart, On::dealt), Values(1, 3)),
    OnRanks::name);

enum class Page {
  own,             ///< private, loaded and stored
  own_of_file,     ///< a private mapping of a file
  shared,          ///< anonymous, with children of a fork
  shared_of_file,  ///< a shared mapping of a file
  hole,            ///< nothing is mapped
  closed,
  read_only,
  executable,
  behind_end,         ///< of a private mapping of a file
  behind_end_shared,  ///< of a shared one
};
constexpr int page_kinds = 10;

/// Pages of the program, each of its kind. The file has them at the same places.
class Region {
 public:
  explicit Region(const std::vector<Page>& kinds) : kinds_(kinds), bytes_(kinds.size() * page_bytes()) {
    file_ = int(syscall(SYS_memfd_create, "region", 0));
    short_file_ = int(syscall(SYS_memfd_create, "short", 0));
    require(file_ >= 0 && short_file_ >= 0, "no file");
    require(ftruncate(file_, long(bytes_)) == 0, "no file of {} bytes", bytes_);
    data_ = reserved(bytes_);
    for (std::size_t i = 0; i < kinds.size(); ++i) make(i);
  }
  ~Region() {
    munmap(data_, bytes_);
    close(file_);
    close(short_file_);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::span<char> span() const { return {data_, bytes_}; }
  char* page(std::size_t i) const { return data_ + i * page_bytes(); }
  char in_file(std::size_t i) const {
    char out = 0;
    require(pread(file_, &out, 1, long(i * page_bytes())) == 1, "page {} of the file", i);
    return out;
  }
  bool can_be_loaded(std::size_t i) const {
    return kinds_[i] != Page::hole && kinds_[i] != Page::closed && kinds_[i] != Page::behind_end &&
           kinds_[i] != Page::behind_end_shared;
  }
  static char value_of(std::size_t i) { return char(17 + i); }

  /// What the system says of these addresses: from, to, how, what.
  std::string mapped() const {
    std::ifstream maps("/proc/self/maps");
    std::string out;
    for (std::string line; std::getline(maps, line);) {
      std::istringstream words(line);
      std::string range, permissions, offset, device, inode;
      words >> range >> permissions >> offset >> device >> inode;
      const auto first = std::stoull(range, nullptr, 16),
                 end = std::stoull(range.substr(range.find('-') + 1), nullptr, 16);
      const auto begin = reinterpret_cast<std::uintptr_t>(data_);
      for (std::size_t i = 0; i < kinds_.size(); ++i)
        if (const std::uintptr_t at = begin + i * page_bytes(); first <= at && at < end)
          out += fmt::format("{}: {} {} {}\n", i, permissions, device, inode);
    }
    return out;
  }

 private:
  /// Far from where the system maps what it may choose the place of, so that holes stay holes.
  static char* reserved(std::size_t bytes) {
    static std::atomic<std::uintptr_t> next = 0x7e90'0000'0000;
    for (int i = 0; i < 1000; ++i) {
      void* const wanted = reinterpret_cast<void*>(next.fetch_add(std::uintptr_t(1) << 20));
      void* const data = mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (data == wanted) return static_cast<char*>(data);
    }
    throw_found("no addresses for the pages of the program", {});
  }
  void make(std::size_t i) {
    char* const at = page(i);
    const Page kind = kinds_[i];
    const auto map = [&](int protection, int flags, int file = -1) {
      const long offset = file < 0 ? 0 : long(i * page_bytes());
      require(mmap(at, page_bytes(), protection, flags | MAP_FIXED, file, offset) == at, "page {}", i);
    };
    constexpr int loads_and_stores = PROT_READ | PROT_WRITE;
    if (kind == Page::hole) return void(munmap(at, page_bytes()));
    if (kind == Page::behind_end) return map(loads_and_stores, MAP_PRIVATE, short_file_);
    if (kind == Page::behind_end_shared) return map(loads_and_stores, MAP_SHARED, short_file_);
    if (kind == Page::own_of_file || kind == Page::shared_of_file)
      map(loads_and_stores, kind == Page::own_of_file ? MAP_PRIVATE : MAP_SHARED, file_);
    else
      map(loads_and_stores, (kind == Page::shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS);
    at[0] = at[page_bytes() - 1] = value_of(i);
    if (kind == Page::closed) mprotect(at, page_bytes(), PROT_NONE);
    if (kind == Page::read_only) mprotect(at, page_bytes(), PROT_READ);
    if (kind == Page::executable) mprotect(at, page_bytes(), loads_and_stores | PROT_EXEC);
  }

  std::vector<Page> kinds_;
  std::size_t bytes_;
  int file_ = -1, short_file_ = -1;
  char* data_ = nullptr;
};

/// The error that these pages are refused with, by the rules of World::register_memory.
std::optional<ErrorCode> refusal_of(const std::vector<Page>& kinds, bool has_file) {
  for (const Page kind : kinds) {
    if (kind == Page::hole || kind == Page::closed || kind == Page::read_only) return ErrorCode::invalid_use;
    if (kind == Page::executable) return ErrorCode::unsupported;
  }
  const auto count = [&](std::initializer_list<Page> some) {
    std::size_t out = 0;
    for (const Page kind : kinds) out += std::size_t(std::count(some.begin(), some.end(), kind));
    return out;
  };
  const std::size_t of_file = count({Page::shared_of_file, Page::behind_end_shared});
  const std::size_t shared = of_file + count({Page::shared});
  if (shared != 0 && (shared != kinds.size() || (has_file && of_file != 0))) return ErrorCode::unsupported;
  if (count({Page::behind_end, Page::behind_end_shared}) != 0) return ErrorCode::invalid_use;
  return std::nullopt;
}

/// What a rank brings is as it was.
void require_unchanged(const Region& region, const std::vector<Page>& kinds, const std::string& mapped) {
  require(region.mapped() == mapped, "mapped was\n{}and is\n{}", mapped, region.mapped());
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (region.can_be_loaded(i))
      require(region.page(i)[0] == Region::value_of(i) && region.page(i)[page_bytes() - 1] == Region::value_of(i),
              "page {}", i);
}

/// These pages hold what they held, at two addresses, where peers put too; and afterwards.
void require_promise(World& world, RegisteredMemory registered, const Region& region, const std::vector<Page>& kinds) {
  Context& rma = world.context();
  const Rank next = (world.rank() + 1) % world.size(), before = (world.rank() + world.size() - 1) % world.size();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    char* const first = region.page(i);
    const Symmetric<char> in_heap = registered.symmetric(first, Index(page_bytes()));
    require(first[0] == Region::value_of(i) && in_heap[0] == Region::value_of(i), "page {} held {}", i, first[0]);
    rma.p(in_heap.from(1), char(100 + world.rank()), next);
    first[2] = 33;
    require(in_heap[2] == 33, "what is stored in page {}", i);
  }
  world.barrier();
  for (int held = 1; held >= 0; --held) {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      require(region.page(i)[1] == 100 + before, "what is put into page {} is {}", i, region.page(i)[1]);
      require(region.page(i)[2] == 33, "what was stored in page {}", i);
      region.page(i)[0] = char(50 + held);
      if (kinds[i] == Page::shared_of_file)
        require(region.in_file(i) == 50 + held, "page {} of the file has {}", i, region.in_file(i));
      if (kinds[i] == Page::own_of_file) require(region.in_file(i) == 0, "the file has {}", region.in_file(i));
    }
    world.barrier();
    registered = {};
    world.allocate<char>(1);  // the place in the heap is free from here on
  }
}

TEST_P(Registered, is_what_was_promised_or_refused_whatever_is_mapped_there) {
  std::vector<std::vector<Page>> cases;
  for (int kind = 0; kind < page_kinds; ++kind) cases.push_back(std::vector<Page>(3, static_cast<Page>(kind)));
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SplitMix64 random(seed);
    const auto other = static_cast<Page>(random.below(page_kinds)), most = static_cast<Page>(random.below(4));
    std::vector<Page> kinds(1 + random.below(5), most);
    kinds[random.below(kinds.size())] = other;
    if (random.below(3) == 0) kinds[random.below(kinds.size())] = static_cast<Page>(random.below(page_kinds));
    cases.push_back(kinds);
  }
  const bool in_file = has_file();
  int accepted = 0;
  for (const std::vector<Page>& kinds : cases) accepted += !refusal_of(kinds, in_file);
  ASSERT_GT(accepted, 5);
  run_once(on(), {.ranks = ranks(), .heap_bytes = std::size_t(1) << 20}, 1, [&](World& world) {
    for (std::size_t number = 0; number < cases.size(); ++number) {
      // One rank brings these pages, the others what is fine.
      const bool is_mine = world.rank() == Rank(number) % world.size();
      const std::vector<Page> fine(cases[number].size(), Page::own), &kinds = is_mine ? cases[number] : fine;
      const std::optional<ErrorCode> refusal = refusal_of(cases[number], in_file);
      const Region region(kinds);
      const std::string mapped = region.mapped();
      try {
        RegisteredMemory registered = world.register_memory(region.span());
        require(!refusal, "case {} is not refused", number);
        require_promise(world, std::move(registered), region, kinds);
      } catch (const Error& error) {
        if (error.code() == ErrorCode::user_exception) throw;
        require(refusal == error.code(), "case {}: {}", number, error.message());
        require(error.message().find("register") != std::string::npos, "{}", error.message());
        if (is_mine || kinds != fine) require_unchanged(region, kinds, mapped);
        for (std::size_t i = 0; !is_mine && i < kinds.size(); ++i)
          require(region.page(i)[0] == Region::value_of(i), "page {} of a rank that brought what is fine", i);
      }
      world.barrier();
    }
  });
}

TEST_P(Registered, is_refused_by_name_where_it_is_no_memory_of_the_program) {
  run_once(on(), {.ranks = ranks()}, 1, [&](World& world) {
    const auto refuses = [&](char* first, std::initializer_list<const char*> parts) {
      const Error error = error_of_rank([&] { world.register_memory(std::span(first, page_bytes())); });
      require_says(error, ErrorCode::invalid_use, parts);
    };
    const auto page_of = [](const void* at) {
      return reinterpret_cast<char*>(round_down(reinterpret_cast<std::uintptr_t>(at), page_bytes()));
    };
    refuses(nullptr, {"nothing is mapped at 0x0"});
    refuses(page_of(reinterpret_cast<void*>(&page_bytes)), {"cannot be written (\"r-xp\")"});
    refuses(page_of("a text"), {"cannot be written (\"r-"});
    refuses(page_of(reinterpret_cast<void*>(~std::uintptr_t(0))), {"register"});
    world.barrier();
  });
}

TEST(RegisteredMemory, that_is_shared_with_a_child_stays_shared_with_it) {
  const std::vector<Page> kinds(2, Page::shared);
  const Region region(kinds);
  int to_child[2], from_child[2];
  ASSERT_EQ(pipe(to_child) + pipe(from_child), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    if (read(to_child[0], &byte, 1) != 1) _exit(1);
    byte = region.page(1)[5];
    (void)!write(from_child[1], &byte, 1);
    _exit(0);
  }
  launch(2, [&](World& world) {
    const Region own(std::vector<Page>(2, Page::own));
    const RegisteredMemory registered = world.register_memory(world.rank() == 0 ? region.span() : own.span());
    if (world.rank() == 1) world.context().p(registered.symmetric(own.page(1) + 5), 'c', 0);
    world.barrier();
  });
  char seen = 0;
  ASSERT_EQ(write(to_child[1], "x", 1), 1);
  ASSERT_EQ(read(from_child[0], &seen, 1), 1);
  EXPECT_EQ(seen, 'c');
  waitpid(child, nullptr, 0);
  for (const int end : {to_child[0], to_child[1], from_child[0], from_child[1]}) close(end);
}

TEST(RegisteredMemory, that_processes_share_is_refused_by_each_of_them) {
  const Region region(std::vector<Page>(2, Page::shared));
  launch_processes(2, [&](World& world) {
    require_says(error_of_rank([&] { world.register_memory(region.span()); }), ErrorCode::unsupported,
                 {"are shared with other processes"});
    world.barrier();
    require(region.page(0)[0] == Region::value_of(0), "it stays");
    if (world.rank() == 0) region.page(1)[9] = 'p';
    world.barrier();
    require(region.page(1)[9] == 'p', "they still share it");
  });
}

}  // namespace
}  // namespace tranship::test
