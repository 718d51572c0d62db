#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/cuda/software/calls.hpp>
#include <tranship/cuda/software/state.hpp>
#include <tranship/fabric/settings.hpp>

namespace tranship::cuda::software {
namespace {

/// The largest part that one step of a copy moves.
constexpr std::size_t part_bytes = std::size_t(128) << 10;
/// Delayed work is done after this time at the latest, even if no caller waits.
constexpr std::uint64_t late_ns_max = 400'000;

State* only_state = nullptr;
std::mutex only_state_mutex;

std::map<std::string_view, KernelTwin>& twins() {
  static auto* const all = new std::map<std::string_view, KernelTwin>;
  return *all;
}

int queues_of_environment() {
  const char* const text = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const int asked = text ? std::atoi(text) : 8;
  return asked < 1 ? 8 : std::min(asked, 32);
}

void drop(std::vector<OpRef>& ops, const Op* op) {
  std::erase_if(ops, [&](const OpRef& one) { return one.get() == op; });
}

}  // namespace

thread_local bool in_host_function = false;

bool register_kernel(const KernelTwin& twin) {
  twins()[twin.name] = twin;
  return true;
}
const KernelTwin* twin_named(std::string_view name) {
  const auto found = twins().find(name);
  return found == twins().end() ? nullptr : &found->second;
}

State* state() noexcept {
  return only_state;
}

std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

State::State(const SoftwareCards& chosen, int queues)
    : options(chosen), random(chosen.seed), memory(chosen.count, chosen.capacity_bytes, chosen.seed) {
  for (int number = 0; number < chosen.count; ++number) {
    auto card = std::make_unique<Card>();
    card->number = number;
    card->legacy.card = card.get();
    card->queues.resize(std::size_t(queues));
    card->default_pool = {number, memory.add_pool(number)};
    pools.insert(&card->default_pool);
    cards.push_back(std::move(card));
  }
  const char* const loading = std::getenv("CUDA_MODULE_LOADING");
  is_eager = loading && std::strcmp(loading, "EAGER") == 0;
}

// Work.

void State::submit_op(Stream& stream, const OpRef& op) {
  Card& card = *stream.card;
  const auto follow = [&](const OpRef& before) {
    if (!is_over(before)) op->after.push_back(before);
  };
  follow(stream.last);
  if (&stream == &card.legacy) {
    for (const Stream* other : card.streams)
      if (other->is_blocking()) follow(other->last);
    for (const auto& [thread, other] : card.of_threads) follow(other->last);
  } else if (stream.is_blocking())
    follow(card.legacy.last);
  stream.last = op;
  op->queue = stream.queue;
  if (!options.is_punctual && random.below(3) == 0)
    op->not_before_ns = std::uint64_t(now_ns()) + random.below(random.below(8) ? 20'000 : late_ns_max);
  card.queues[std::size_t(stream.queue)].push_back(op);
  wake();
}

OpRef State::submit(Stream& stream, Node node) {
  if (stream.capture) {
    Graph& graph = *stream.capture->graph;
    node.after = stream.tails;
    graph.nodes.push_back(std::move(node));
    stream.tails = {int(graph.nodes.size()) - 1};
    return nullptr;
  }
  OpRef op = node.make(*stream.card);
  submit_op(stream, op);
  return op;
}

std::vector<OpRef> State::all_work(Card& card) const {
  std::vector<OpRef> all = card.under_way;
  all.insert(all.end(), card.unqueued.begin(), card.unqueued.end());
  for (const auto& queue : card.queues) all.insert(all.end(), queue.begin(), queue.end());
  return all;
}

CUresult State::wait_for_all(Lock& lock, Card& card) {
  const std::vector<OpRef> all = all_work(card);
  return wait(lock, card, [&] { return std::all_of(all.begin(), all.end(), is_over); });
}

void State::finish(const OpRef& op) {
  op->over_ns = now_ns();
  op->now = Op::Now::over;
  op->after.clear();
  ++ops_done;
  done.notify_all();
}

void State::fail(Card& card, CUresult error, std::string text) {
  if (card.failure == CUDA_SUCCESS) {
    card.failure = error;
    card.failure_text = std::move(text);
  }
  for (const OpRef& op : all_work(card)) {
    op->give_up();
    op->is_given_up = true;
    finish(op);
  }
  card.under_way.clear();
  card.unqueued.clear();
  card.pending_frees.clear();
  for (auto& queue : card.queues) queue.clear();
  card.held = 0;
}

bool State::begin_one(Lock&) {
  std::vector<std::pair<Card*, OpRef>> all;
  const auto now = std::uint64_t(now_ns());
  const auto look = [&](Card& card, const OpRef& op) {
    if (op->not_before_ns > now && hosts_waiting == 0) return;
    if (!std::all_of(op->after.begin(), op->after.end(), is_over)) return;
    if (options.is_stuck &&
        std::any_of(op->after.begin(), op->after.end(), [](const OpRef& one) { return one->is_given_up; }))
      return;
    if (op->can_begin()) all.emplace_back(&card, op);
  };
  for (const auto& card : cards) {
    for (const auto& queue : card->queues)
      if (!queue.empty()) look(*card, queue.front());
    for (const OpRef& op : card->unqueued) look(*card, op);
  }
  if (all.empty()) return false;
  const auto [card, op] = all[options.is_punctual ? 0 : random.below(all.size())];
  if (op->queue >= 0)
    card->queues[std::size_t(op->queue)].pop_front();
  else
    drop(card->unqueued, op.get());
  op->now = Op::Now::under_way;
  card->under_way.push_back(op);
  op->begin();
  return true;
}

void State::run() {
  Lock lock(mutex);
  int fruitless = 0;
  for (;;) {
    while (begin_one(lock) && (options.is_punctual || random.below(4) > 0)) fruitless = 0;
    std::vector<OpRef> all;
    bool is_late = false;
    for (const auto& card : cards) {
      all.insert(all.end(), card->under_way.begin(), card->under_way.end());
      for (const auto& queue : card->queues) is_late |= !queue.empty();
      is_late |= !card->unqueued.empty();
    }
    if (all.empty()) {
      if (is_late)
        work.wait_for(lock, std::chrono::microseconds(20));
      else
        work.wait(lock);
      continue;
    }
    const OpRef op = all[random.below(all.size())];
    lock.unlock();
    const Op::Went went = op->step();
    lock.lock();
    if (op->now != Op::Now::under_way) continue;
    fruitless = went == Op::Went::nowhere ? fruitless + 1 : 0;
    if (went == Op::Went::over) {
      drop(op->card->under_way, op.get());
      op->end();
      finish(op);
    } else if (fruitless > 4 * int(all.size())) {
      // All that is under way waits for the host, or for other processes.
      work.wait_for(lock, std::chrono::microseconds(20));
    }
  }
}

void State::run_host_functions() {
  Lock lock(mutex);
  for (;;) {
    host_work.wait(lock, [&] { return !host_functions.empty(); });
    const std::function<void()> function = std::move(host_functions.front());
    host_functions.pop_front();
    lock.unlock();
    in_host_function = true;
    function();
    in_host_function = false;
    lock.lock();
    wake();
  }
}

Op::Went CopyOp::step() {
  std::size_t left = part_bytes;
  while (!parts.empty() && left > 0) {
    CopyPart& part = from_behind ? parts.back() : parts.front();
    const std::size_t bytes = std::min(part.bytes, left);
    // From the end of a part or from its beginning; both occur.
    const std::size_t offset = from_behind ? part.bytes - bytes : 0;
    std::memmove(part.target + offset, part.source + offset, bytes);
    left -= bytes;
    part.bytes -= bytes;
    if (!from_behind) part.target += bytes, part.source += bytes;
    if (part.bytes == 0) {
      if (from_behind)
        parts.pop_back();
      else
        parts.pop_front();
    }
  }
  return parts.empty() ? Went::over : Went::on;
}

Op::Went FillOp::step() {
  for (const Stretch& stretch : target) {
    if (width == 1) {
      std::memset(stretch.first, int(value & 0xff), stretch.bytes);
      continue;
    }
    for (std::size_t at = 0; at < stretch.bytes; at += width) std::memcpy(stretch.first + at, &value, width);
  }
  return Went::over;
}

void FreeOp::end() {
  if (first == 0) return;
  State& all = *state();
  std::erase_if(card->pending_frees, [&](const PendingFree& one) { return one.op.get() == this; });
  all.memory.release(first);
}

Op::Went WriteValueOp::step() {
  if (bytes == 8)
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(target), value, __ATOMIC_RELEASE);
  else
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(target), std::uint32_t(value), __ATOMIC_RELEASE);
  return Went::over;
}

Op::Went WaitValueOp::step() {
  std::uint64_t seen = 0;
  bool is_reached = false;
  if (bytes == 8) {
    seen = __atomic_load_n(reinterpret_cast<const std::uint64_t*>(source), __ATOMIC_ACQUIRE);
    is_reached = std::int64_t(seen - value) >= 0;
  } else {
    seen = __atomic_load_n(reinterpret_cast<const std::uint32_t*>(source), __ATOMIC_ACQUIRE);
    is_reached = std::int32_t(std::uint32_t(seen) - std::uint32_t(value)) >= 0;
  }
  switch (flags & 3) {
    case CU_STREAM_WAIT_VALUE_EQ:
      is_reached = seen == value;
      break;
    case CU_STREAM_WAIT_VALUE_AND:
      is_reached = (seen & value) != 0;
      break;
    case CU_STREAM_WAIT_VALUE_NOR:
      is_reached = ~(seen | value) != 0;
      break;
    default:
      break;
  }
  return is_reached ? Went::over : Went::nowhere;
}

Op::Went HostOp::step() {
  if (!has_begun) {
    has_begun = true;
    State& all = *state();
    const Lock lock(all.mutex);
    for (const OpRef& op : card->under_way)
      if (op.get() == this)
        all.host_functions.push_back([op] {
          auto& self = static_cast<HostOp&>(*op);
          self.function(self.argument);
          self.has_ended = true;
        });
    all.host_work.notify_one();
  }
  return has_ended ? Went::over : Went::nowhere;
}

// Kernels.

int resident_blocks_max(const KernelTwin& twin, int lanes, std::size_t dynamic_shared_bytes) {
  const int warps = (lanes + 31) / 32;
  if (lanes < 1 || lanes > twin.lanes_max) return 0;
  const std::size_t shared = twin.shared_bytes + dynamic_shared_bytes;
  int blocks = std::min(blocks_of_multiprocessor, lanes_of_multiprocessor / (warps * 32));
  blocks = std::min(blocks, registers_of_multiprocessor / (twin.registers * warps * 32));
  // The system keeps 1 KiB for each block.
  if (shared > 0) blocks = std::min(blocks, int(shared_of_multiprocessor / (shared + 1024)));
  return blocks;
}

KernelOp::KernelOp(Card& of_card, const KernelTwin& twin_of, const void* args_of, const GridShape& shape_of,
                   bool is_cooperative_of)
    : Op(of_card), twin(twin_of), shape(shape_of), is_cooperative(is_cooperative_of) {
  const auto* const bytes = static_cast<const unsigned char*>(args_of);
  args.assign(bytes, bytes + twin.args_bytes);
  share = 1.0 / (multiprocessors * resident_blocks_max(twin, shape.lanes(), shape.dynamic_shared_bytes));
}

bool KernelOp::can_begin() {
  return !is_cooperative || card->held + share * shape.blocks() <= 1 + 1e-9;
}

void KernelOp::hold_blocks() {
  while (run->has_more() && card->held + share <= 1 + 1e-9) {
    card->held += share;
    held += share;
    run->begin_block();
  }
}

void KernelOp::begin() {
  State& all = *state();
  all.memory.open();
  run = std::make_unique<GridRun>(all.memory, card->number, twin, args.data(), shape, all.random.next());
  hold_blocks();
}

Op::Went KernelOp::step() {
  const int before = run->resident();
  const GridRun::Went went = run->step();
  const double freed = share * (before - run->resident());
  card->held -= freed;
  held -= freed;
  const int begun = run->begun();
  if (went != GridRun::Went::over) hold_blocks();
  if (went == GridRun::Went::over) return Went::over;
  return went == GridRun::Went::on || run->begun() > begun ? Went::on : Went::nowhere;
}

void KernelOp::end() {
  State& all = *state();
  card->held -= held;
  all.memory.close();
  card->counts[twin.name].add(run->counts());
  const Fault fault = run->fault();
  run.reset();
  if (!fault) return;
  all.fail(*card,
           fault.kind == FaultKind::illegal_address ? CUDA_ERROR_ILLEGAL_ADDRESS
           : fault.kind == FaultKind::misaligned    ? CUDA_ERROR_MISALIGNED_ADDRESS
                                                    : CUDA_ERROR_LAUNCH_FAILED,
           fault.text);
}

void KernelOp::give_up() {
  if (!run) return;
  run.reset();
  state()->memory.close();
}

// The cards of the process.

SoftwareCards software_cards(std::string_view text) {
  const auto refuse = [&](std::string_view word, std::string_view why) {
    throw_error(
        ErrorCode::bad_text,
        "TRANSHIP_CUDA is 'software:{}': '{}' {}; expected is software[:CARDS][:seed=N][:memory=BYTES][:punctual]"
        "[:apart][:stuck], with 1 to 16 cards, as in software:2:seed=7:memory=64M",
        printable(text), printable(word), why);
  };
  SoftwareCards cards;
  std::set<std::string_view> names;
  if (text.ends_with(':')) refuse("", "is no setting");
  std::string_view rest = text;
  for (bool is_first = true; !rest.empty(); is_first = false) {
    const std::string_view word = rest.substr(0, rest.find(':'));
    rest = word.size() == rest.size() ? std::string_view() : rest.substr(word.size() + 1);
    if (!names.insert(word.substr(0, word.find('='))).second) refuse(word, "is a setting that was given before");
    const auto number = [&](std::string_view digits) {
      std::uint64_t value = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error != std::errc() || end != digits.data() + digits.size()) refuse(digits, "is no number");
      return value;
    };
    if (is_first && word.find_first_not_of("0123456789") == std::string_view::npos) {
      const std::uint64_t count = number(word);
      if (count < 1 || count > 16) refuse(word, "is no number of cards");
      cards.count = int(count);
    } else if (word.starts_with("seed="))
      cards.seed = number(word.substr(5));
    else if (word.starts_with("memory=")) {
      try {
        cards.capacity_bytes = heap_bytes_of("memory", std::string(word.substr(7)));
      } catch (const Error&) {
        refuse(word, "is no positive number of bytes");
      }
    } else if (word == "punctual")
      cards.is_punctual = true;
    else if (word == "apart")
      cards.is_apart = true;
    else if (word == "stuck")
      cards.is_stuck = true;
    else
      refuse(word, is_first ? "is neither a number of cards nor a setting" : "is no setting");
  }
  return cards;
}

void fill_calls(AllCalls& table, const SoftwareCards& cards) {
  {
    const std::lock_guard lock(only_state_mutex);
    if (!only_state) {
      catch_faults_of_kernels();
      // It lives as long as the process, as its threads do.
      auto* const made = new State(cards, queues_of_environment());
      only_state = made;
      std::thread([made] { made->run(); }).detach();
      std::thread([made] { made->run_host_functions(); }).detach();
    } else if (only_state->options.count != cards.count || only_state->options.capacity_bytes != cards.capacity_bytes)
      throw_error(ErrorCode::invalid_use, "software cards: {} of {} were made before, {} of {} are asked for",
                  only_state->options.count, amount(only_state->options.capacity_bytes, "byte"), cards.count,
                  amount(cards.capacity_bytes, "byte"));
  }
#define TRANSHIP_DRIVER_CALL(name) table.name = &calls::name;
#include <tranship/cuda/driver_calls.def>
#include <tranship/cuda/software/more_calls.def>
#undef TRANSHIP_DRIVER_CALL
}

void begin_anew(std::uint64_t seed) {
  State& all = *state();
  const Lock lock(all.mutex);
  all.options.seed = seed;
  all.random = SplitMix64(seed);
  for (const auto& card : all.cards) {
    TRANSHIP_ASSERT(all.all_work(*card).empty());
    card->failure = CUDA_SUCCESS;
    card->failure_text.clear();
    card->counts.clear();
  }
}

KernelCounts counts_of(int card, std::string_view kernel) {
  State& all = *state();
  const Lock lock(all.mutex);
  const auto& counts = all.cards.at(std::size_t(card))->counts;
  const auto found = counts.find(std::string(kernel));
  return found == counts.end() ? KernelCounts() : found->second;
}

std::string failure_of(int card) {
  State& all = *state();
  const Lock lock(all.mutex);
  return all.cards.at(std::size_t(card))->failure_text;
}

}  // namespace tranship::cuda::software
