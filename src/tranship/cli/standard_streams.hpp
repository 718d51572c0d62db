// Private: Arrays on standard input and output. Files are read and written in no particular order, so a stream is a
// file for a while: in TMPDIR, or /tmp where that is not set.
#pragma once

#include <string>

#include <tranship/base/function_ref.hpp>
#include <tranship/base/result.hpp>

namespace tranship::cli {

/// What a command calls them.
inline constexpr char standard_stream[] = "-";

/// A file in a folder of its own that stands for a stream; both are gone with the object.
class Spool {
 public:
  /// Throws `io`.
  Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  ~Spool();

  std::string path() const { return folder_ + "/array.npy"; }
  /// Makes the file of all that comes on standard input. `watch` is called every now and then, and after a signal.
  /// Throws `io`.
  void receive(FunctionRef<void()> watch) const;
  /// The same error with the name of the stream in place of what lies in the folder.
  Error renamed(const Error& error) const;
  /// Writes the file to standard output; `watch` as above. Throws `io`, and OutputClosed.
  void send(FunctionRef<void()> watch) const;

 private:
  std::string folder_;
};

}  // namespace tranship::cli
