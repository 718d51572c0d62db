// A model of the two-sided messages of MPI, in one thread and under a seed. It is as unfriendly as the standard allows:
//
// - Messages of one rank to another under one tag meet receives in the order in which they were sent. All others may
//   overtake each other, and any operation may need any number of tests before it is complete.
// - A send is complete at once, or only after its message has met a receive. Its memory is read as late as that allows,
//   and must hold the same bytes until then.
// - The memory of a receive that has met a message holds garbage until the receive is complete.
// - The number of a communicator that all ranks have freed is used again, and messages that were left over with it.
//
// The model records as a fault each misuse by the program, for which MPI would end the job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <tranship/base/index.hpp>
#include <tranship/fabric/mpi/mpi_module.hpp>

#include "support/random_layouts.hpp"

namespace tranship::test {

/// One at a time: the functions of its table have no argument that could name it.
class MpiModel {
 public:
  /// One thing that no MPI does, for tests of tests.
  enum class Mistake {
    none,
    takes_any_receive,         ///< a message meets any of the receives that fit
    overtakes,                 ///< messages of one rank under one tag arrive in any order
    completes_sends_early,     ///< of other tags than 1, before their memory is read
    completes_receives_early,  ///< of other tags than 1, before their memory is written
    loses_a_message,           ///< the twentieth
    delivers_a_message_twice   ///< the twentieth
  };
  struct Options {
    int ranks = 2;
    std::uint64_t seed = 1;
    int highest_tag = 32767;
    Mistake mistake = Mistake::none;
  };
  struct Sent {
    Rank from = 0, to = 0;
    int tag = 0;
    std::size_t size_bytes = 0;
  };

  explicit MpiModel(const Options& options);
  /// Lets all that is still on its way read and write its memory, unless MPI was finalised.
  ~MpiModel();
  MpiModel(const MpiModel&) = delete;
  MpiModel& operator=(const MpiModel&) = delete;

  /// Its calls are those of the rank that `be` has named.
  const MpiModule& table() const { return table_; }
  void be(Rank rank) { rank_ = rank; }
  /// A communicator of all ranks, with the lowest number that none has.
  MpiHandle open();
  /// One message, perhaps, comes to where it meets receives.
  void move();

  /// Lets `calls` calls of send, receive and test succeed and the next one fail; calls after it succeed again.
  void fail_after(int calls) { calls_left_ = calls; }
  bool has_failed() const { return has_failed_; }
  /// Enters the state after MPI_Finalize, in which any other call is a fault.
  void finalise() { state_ = MpiModule::State::finalised; }

  std::function<void(const Sent&)> on_send;
  /// The first one, empty where there was none.
  const std::string& fault() const { return fault_; }
  void add_fault(std::string text);
  /// Messages that no receive has completed, sends and receives that are not complete.
  std::size_t left_over() const { return unmatched_.size() + on_their_way_.size() + requests_.size(); }

 private:
  struct Message;
  struct Request;
  struct Calls;
  friend Calls;
  using MessageAt = std::shared_ptr<Message>;

  static constexpr MpiHandle null_request = 0x2c000000;
  static constexpr int failed_code = 13, misuse_code = 14;

  int misused(std::string text);
  bool fails();
  bool is_open(MpiHandle comm, const char* call);
  void arrive(MessageAt message);
  void match(Request& receive, const MessageAt& message);
  static bool fits(const Request& receive, const Message& message);
  static void read_source(Message& message);
  void complete_send(Request& request);
  void complete_receive(Request& request);
  MpiHandle add(Request request);
  void drop(MpiHandle request);

  Options options_;
  MpiModule table_ = {};
  Random random_;
  Rank rank_ = 0;
  MpiModule::State state_ = MpiModule::State::running;
  std::map<MpiHandle, std::set<Rank>> users_;  // of each communicator: who has not freed it
  MpiHandle next_request_ = null_request + 1;
  std::map<MpiHandle, Request> requests_;
  std::list<MpiHandle> posted_;  // receives that have met nothing, in order
  std::vector<MessageAt> on_their_way_;
  std::list<MessageAt> unmatched_;  // have arrived, in order
  int eager_of_ = 1, tests_max_ = 0, away_of_ = 1;
  int messages_ = 0;
  int calls_left_ = -1;
  bool has_failed_ = false;
  std::string fault_;
};

}  // namespace tranship::test
