// Runs the command as a shell would: arguments in, exit code and both outputs out.
#pragma once

#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/base/json.hpp>

#include "file/temporary_folder.hpp"
#include "support/paths.hpp"

namespace tranship {

/// What gtest shows of a value.
inline void PrintTo(const Json& value, std::ostream* out) {
  *out << value.dump({.invalid = InvalidUtf8::replace});
}

}  // namespace tranship

namespace tranship::testing {

struct Outcome {
  int code = -1;  ///< exit code; -1 - n when signal n ended it
  std::string output;
  std::string errors;

  Json json() const { return parse_json(output); }
};

/// A folder that commands run in.
class Workplace {
 public:
  std::string path(const std::string& name) const { return folder_.path(name); }
  /// Names of all files and folders, at any depth.
  std::set<std::string> names() const { return folder_.names(); }
  void write(const std::string& name, const std::string& text) const { write_text(path(name), text); }
  std::string read(const std::string& name) const { return read_text(path(name)); }

  /// `output` is where standard output goes; by default it is collected.
  Outcome run(const std::vector<std::string>& arguments, int output = -1) const {
    const std::string output_path = streams_.path("output");
    const std::string errors_path = streams_.path("errors");
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("cannot fork");
    if (child == 0) {
      const int flags = O_WRONLY | O_CREAT | O_TRUNC;
      if (output < 0) output = ::open(output_path.c_str(), flags, 0600);
      const int errors = ::open(errors_path.c_str(), flags, 0600);
      std::vector<char*> words = {const_cast<char*>("tranship")};
      for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
      words.push_back(nullptr);
      if (::dup2(output, STDOUT_FILENO) < 0 || ::dup2(errors, STDERR_FILENO) < 0 ||
          ::chdir(folder_.path().c_str()) != 0)
        ::_exit(126);
      ::execv(test::command_path(), words.data());
      ::_exit(127);
    }
    int status = 0;
    if (::waitpid(child, &status, 0) != child) throw std::runtime_error("cannot wait for the command");
    Outcome out;
    out.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1 - WTERMSIG(status);
    if (output < 0) out.output = read_text(output_path);
    out.errors = read_text(errors_path);
    return out;
  }

 private:
  TemporaryFolder folder_{FolderPlace::memory};
  TemporaryFolder streams_{FolderPlace::memory};
};

/// A .npy file of version 1.0 with the given header and data.
inline std::string npy(std::string header, const std::string& data) {
  header += std::string((64 - (header.size() + 11) % 64) % 64, ' ') + "\n";
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  return out + header + data;
}

/// int16 elements 0, 1, 2, ... in so many rows and columns, as NumPy stores them.
inline std::string numbered_npy(int rows, int columns, const std::string& fortran = "False") {
  std::string data;
  for (int i = 0; i < rows * columns; ++i) {
    data += static_cast<char>(i & 0xff);
    data += static_cast<char>(i >> 8 & 0xff);
  }
  return npy("{'descr': '<i2', 'fortran_order': " + fortran + ", 'shape': (" + std::to_string(rows) + ", " +
                 std::to_string(columns) + "), }",
             data);
}

}  // namespace tranship::testing
