#include "support/ndsl_cases.hpp"

#include <cstdlib>
#include <stdexcept>

#include <tranship/file/format/npy.hpp>

#include "support/paths.hpp"
#include "support/text_file.hpp"

namespace tranship::test {

std::string ndsl_path(const std::string& name) {
  const char* all = std::getenv("TRANSHIP_CONFORMANCE_DIR");
  return (all ? std::string(all) : test_path("fixtures")) + "/ndsl/" + name;
}

std::string read_ndsl(const std::string& name) {
  return read_text(ndsl_path(name));
}

NdslArrays::NdslArrays(const std::string& name)
    : bytes_(read_ndsl(name)), archive_(std::as_bytes(std::span(bytes_))), members_(parse_zip(archive_).value()) {}

bool NdslArrays::has(const std::string& name) const {
  return find_zip_member(members_, name + ".npy") != nullptr;
}

std::string NdslArrays::elements(const std::string& name) const {
  const ZipMember* member = find_zip_member(members_, name + ".npy");
  if (!member) throw std::runtime_error("no array " + name);
  std::string out;
  read_zip_member(archive_, *member, [&](std::span<const std::byte> piece) {
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }).value();
  const NpyHeader header = parse_npy_header(std::as_bytes(std::span(out)), Index(out.size())).value();
  if (header.order != NpyOrder::c) throw std::runtime_error("array " + name + " is not in C order");
  return out.substr(std::size_t(header.header_bytes));
}

}  // namespace tranship::test
