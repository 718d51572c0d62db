#include "support/text_file.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tranship::test {

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot open " + path);
  std::ostringstream out;
  // Without a byte to copy, copying counts as having failed.
  if (in.peek() != std::ifstream::traits_type::eof()) out << in.rdbuf();
  if (in.bad() || !out) throw std::runtime_error("cannot read " + path);
  return std::move(out).str();
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace tranship::test
