#include "support/mpi_model.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/core.h>

namespace tranship::test {

namespace {

MpiModel* model_here = nullptr;

}  // namespace

struct MpiModel::Message {
  Sent sent = {};
  MpiHandle comm = 0;
  const std::byte* source = nullptr;
  std::vector<std::byte> bytes = {};  ///< once they have been read
  bool is_read = false;
  bool has_met = false;

  bool is_of_one_order_with(const Message& other) const {
    return sent.from == other.sent.from && sent.to == other.sent.to && sent.tag == other.sent.tag && comm == other.comm;
  }
};

struct MpiModel::Request {
  bool is_send = false;
  bool waits_for_receive = false;
  Index tests_left = 0;
  MessageAt message = {};  ///< of a receive: that it has met
  // The members below belong to a receive.
  Rank owner = 0;
  MpiHandle comm = 0;
  int from = 0, tag = 0;
  std::byte* target = nullptr;
  std::size_t size_bytes = 0;
};

/// The functions of the table.
struct MpiModel::Calls {
  static MpiModule::State state() { return model_here->state_; }
  static void error_text(int code, char* text, std::size_t size) {
    std::snprintf(text, size, code == failed_code ? "no memory is left (code %d)" : "misused (code %d)", code);
  }
  static int highest_tag(MpiHandle comm, int* out) {
    *out = model_here->options_.highest_tag;
    return model_here->is_open(comm, "highest_tag") ? 0 : misuse_code;
  }
  static int free(MpiHandle comm) {
    MpiModel& model = *model_here;
    const auto found = model.users_.find(comm);
    if (found == model.users_.end() || found->second.erase(model.rank_) == 0)
      return model.misused(fmt::format("rank {} frees communicator {}, which it does not have", model.rank_, comm));
    if (found->second.empty()) model.users_.erase(found);
    return 0;
  }

  static int send(const void* data, int size_bytes, int to, int tag, MpiHandle comm, MpiHandle* request) {
    MpiModel& model = *model_here;
    *request = null_request;
    if (!model.is_open(comm, "send")) return misuse_code;
    if (size_bytes < 0 || to < 0 || to >= model.options_.ranks || tag < 0 || tag > model.options_.highest_tag)
      return model.misused(fmt::format("rank {} sends {} bytes to {} of {} ranks under tag {}, the highest is {}",
                                       model.rank_, size_bytes, to, model.options_.ranks, tag,
                                       model.options_.highest_tag));
    if (model.fails()) return failed_code;
    const Sent sent{.from = model.rank_, .to = to, .tag = tag, .size_bytes = std::size_t(size_bytes)};
    auto message =
        std::make_shared<Message>(Message{.sent = sent, .comm = comm, .source = static_cast<const std::byte*>(data)});
    if (model.on_send) model.on_send(sent);
    Request made{.is_send = true, .message = message};
    const bool is_eager = model.random_.one_in(model.eager_of_);
    if (is_eager) read_source(*message);
    made.waits_for_receive = !is_eager && model.random_.one_in(2);
    made.tests_left = model.random_.below(model.tests_max_ + 1);
    *request = model.add(std::move(made));
    const bool is_twentieth = ++model.messages_ == 20;
    if (is_twentieth && model.options_.mistake == Mistake::loses_a_message) {
      read_source(*message);
      message->has_met = true;
      return 0;
    }
    if (is_twentieth && model.options_.mistake == Mistake::delivers_a_message_twice) {
      read_source(*message);
      model.on_their_way_.push_back(std::make_shared<Message>(*message));
    }
    model.on_their_way_.push_back(std::move(message));
    return 0;
  }

  static int receive(void* data, int size_bytes, int from, int tag, MpiHandle comm, MpiHandle* request) {
    MpiModel& model = *model_here;
    *request = null_request;
    if (!model.is_open(comm, "receive")) return misuse_code;
    if (size_bytes < 0 || from < MpiModule::any_source || from >= model.options_.ranks || tag < 0 ||
        tag > model.options_.highest_tag)
      return model.misused(fmt::format("rank {} receives {} bytes from {} of {} ranks under tag {}, the highest is {}",
                                       model.rank_, size_bytes, from, model.options_.ranks, tag,
                                       model.options_.highest_tag));
    if (model.fails()) return failed_code;
    *request = model.add({.owner = model.rank_,
                          .comm = comm,
                          .from = from,
                          .tag = tag,
                          .target = static_cast<std::byte*>(data),
                          .size_bytes = std::size_t(size_bytes)});
    Request& made = model.requests_.at(*request);
    const auto first = std::find_if(model.unmatched_.begin(), model.unmatched_.end(),
                                    [&](const MessageAt& message) { return fits(made, *message); });
    if (first == model.unmatched_.end()) {
      model.posted_.push_back(*request);
      return 0;
    }
    model.match(made, *first);
    model.unmatched_.erase(first);
    return 0;
  }

  static int test(MpiHandle* request, bool* is_complete, MpiModule::Arrival* arrival) {
    MpiModel& model = *model_here;
    *is_complete = false;
    if (model.state_ != MpiModule::State::running) return model.misused("test after MPI was finalised");
    if (arrival) *arrival = {.source = MpiModule::any_source};
    if (*request == null_request) {
      *is_complete = true;
      return 0;
    }
    const auto found = model.requests_.find(*request);
    if (found == model.requests_.end())
      return model.misused(fmt::format("rank {} tests request {}, which there is not", model.rank_, *request));
    if (model.fails()) {
      if (model.random_.one_in(2)) {
        model.drop(*request);
        *request = null_request;
      }
      return failed_code;
    }
    if (model.random_.one_in(2)) model.move();
    Request& made = found->second;
    const bool has_met = made.message && (!made.is_send || !made.waits_for_receive || made.message->has_met);
    if (!has_met || made.tests_left-- > 0) return 0;
    if (arrival) *arrival = {made.message->sent.from, std::int64_t(made.message->sent.size_bytes)};
    made.is_send ? model.complete_send(made) : model.complete_receive(made);
    model.requests_.erase(found);
    *request = null_request;
    *is_complete = true;
    return 0;
  }

  /// A receive that has met a message goes on: MPI ignores its withdrawal.
  static int withdraw(MpiHandle* request) {
    MpiModel& model = *model_here;
    if (model.state_ != MpiModule::State::running) return model.misused("withdraw after MPI was finalised");
    if (*request == null_request) return 0;
    const auto found = model.requests_.find(*request);
    if (found == model.requests_.end() || found->second.is_send)
      return model.misused(fmt::format("rank {} withdraws {}, which is no receive", model.rank_, *request));
    if (found->second.message) return 0;
    model.posted_.remove(*request);
    // Complete with the next test, without a message.
    found->second.tests_left = 0;
    found->second.message = std::make_shared<Message>(Message{.is_read = true, .has_met = true});
    return 0;
  }
};

MpiModel::MpiModel(const Options& options) : options_(options), random_(options.seed) {
  table_.version = MpiModule::version_here;
  table_.abi = "a model";
  table_.state = Calls::state;
  table_.error_text = Calls::error_text;
  table_.highest_tag = Calls::highest_tag;
  table_.free = Calls::free;
  table_.send = Calls::send;
  table_.receive = Calls::receive;
  table_.test = Calls::test;
  table_.withdraw = Calls::withdraw;
  model_here = this;
  eager_of_ = int(random_.between(1, 8));
  tests_max_ = int(random_.pick(std::vector<int>{0, 1, 3, 12}));
  away_of_ = int(random_.between(1, 6));
}

MpiModel::~MpiModel() {
  if (state_ == MpiModule::State::finalised) requests_.clear();
  for (auto& [handle, request] : requests_)
    if (request.message) request.is_send ? read_source(*request.message) : complete_receive(request);
  model_here = nullptr;
}

void MpiModel::add_fault(std::string text) {
  if (fault_.empty()) fault_ = std::move(text);
}

int MpiModel::misused(std::string text) {
  add_fault(std::move(text));
  return misuse_code;
}

bool MpiModel::fails() {
  const bool does = calls_left_ >= 0 && calls_left_-- == 0;
  has_failed_ |= does;
  return does;
}

bool MpiModel::is_open(MpiHandle comm, const char* call) {
  const auto found = users_.find(comm);
  if (state_ == MpiModule::State::running && found != users_.end() && found->second.contains(rank_)) return true;
  add_fault(fmt::format("rank {} calls {} of communicator {}, which it does not have", rank_, call, comm));
  return false;
}

MpiHandle MpiModel::open() {
  MpiHandle comm = 1;
  while (users_.contains(comm)) ++comm;
  for (Rank rank = 0; rank < options_.ranks; ++rank) users_[comm].insert(rank);
  return comm;
}

MpiHandle MpiModel::add(Request request) {
  requests_.emplace(next_request_, std::move(request));
  return next_request_++;
}

void MpiModel::drop(MpiHandle request) {
  const auto found = requests_.find(request);
  if (found->second.is_send) read_source(*found->second.message);
  posted_.remove(request);
  requests_.erase(found);
}

bool MpiModel::fits(const Request& receive, const Message& message) {
  return receive.owner == message.sent.to && receive.comm == message.comm && receive.tag == message.sent.tag &&
         (receive.from == MpiModule::any_source || receive.from == message.sent.from);
}

void MpiModel::move() {
  if (on_their_way_.empty() || !random_.one_in(away_of_)) return;
  auto at = on_their_way_.begin() + random_.below(Index(on_their_way_.size()));
  // The first of its kind.
  if (options_.mistake != Mistake::overtakes)
    at = std::find_if(on_their_way_.begin(), at, [&](const MessageAt& one) { return one->is_of_one_order_with(**at); });
  MessageAt message = std::move(*at);
  on_their_way_.erase(at);
  arrive(std::move(message));
}

void MpiModel::arrive(MessageAt message) {
  std::vector<std::list<MpiHandle>::iterator> fitting;
  for (auto at = posted_.begin(); at != posted_.end(); ++at)
    if (fits(requests_.at(*at), *message)) fitting.push_back(at);
  if (fitting.empty()) return unmatched_.push_back(std::move(message));
  const auto chosen = options_.mistake == Mistake::takes_any_receive ? random_.pick(fitting) : fitting.front();
  match(requests_.at(*chosen), message);
  posted_.erase(chosen);
}

void MpiModel::match(Request& receive, const MessageAt& message) {
  message->has_met = true;
  receive.message = message;
  receive.tests_left = random_.below(tests_max_ + 1);
  if (message->sent.size_bytes > receive.size_bytes)
    add_fault(fmt::format("a message of {} bytes of rank {} under tag {} has met a receive of {} at rank {}",
                          message->sent.size_bytes, message->sent.from, message->sent.tag, receive.size_bytes,
                          receive.owner));
  std::fill_n(receive.target, std::min(message->sent.size_bytes, receive.size_bytes), std::byte(0xdb));
}

void MpiModel::read_source(Message& message) {
  if (message.is_read) return;
  message.bytes.assign(message.source, message.source + message.sent.size_bytes);
  message.is_read = true;
}

void MpiModel::complete_send(Request& request) {
  Message& message = *request.message;
  if (options_.mistake == Mistake::completes_sends_early && message.sent.tag != 1) return;
  read_source(message);
  if (!std::equal(message.bytes.begin(), message.bytes.end(), message.source))
    add_fault(fmt::format("rank {} has written what it sends to {} under tag {} before that was complete",
                          message.sent.from, message.sent.to, message.sent.tag));
}

void MpiModel::complete_receive(Request& request) {
  if (options_.mistake == Mistake::completes_receives_early && request.tag != 1) return;
  read_source(*request.message);
  const std::vector<std::byte>& bytes = request.message->bytes;
  std::copy_n(bytes.begin(), std::min(bytes.size(), request.size_bytes), request.target);
}

}  // namespace tranship::test
