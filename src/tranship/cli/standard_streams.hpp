// Private: Arrays on standard input and output. Files are read and written in no particular order, so a stream is
// stored in a file first: in TMPDIR, or in /tmp if TMPDIR is not set.
#pragma once

#include <string>

#include <tranship/base/function_ref.hpp>
#include <tranship/base/result.hpp>

namespace tranship::cli {

/// The name of a standard stream in arguments.
inline constexpr char standard_stream[] = "-";

/// A file that stands for a stream, in a folder of its own. The destructor removes both.
class Spool {
 public:
  /// Makes the folder. Throws `io`.
  Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  ~Spool();

  std::string path() const { return folder_ + "/array.npy"; }
  /// Writes all of standard input to the file. Calls `watch` at intervals and after a signal. Throws `io`.
  void receive(FunctionRef<void()> watch) const;
  /// Returns the same error with the name of the stream in place of the file's path.
  Error renamed(const Error& error) const;
  /// Writes the file to standard output; calls `watch` like receive(). Throws `io`, and OutputClosed.
  void send(FunctionRef<void()> watch) const;

 private:
  std::string folder_;
};

}  // namespace tranship::cli
