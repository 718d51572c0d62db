// Private: The manifest of a directory of parts: what its files are, in JSON that people can read as well.
//
//   {"tranship_manifest": 1, "layout": {...}, "layout_text": "...", "descr": "<f8",
//    "parts": [{"rank": 0, "file": "part-00000.npy", "shape": [86, 403], "crc32": "8d0f2b17"}, ...]}
//
// An array of 0 dimensions also has "dimensions": 0. "crc32" is the checksum of the whole file, as zlib.crc32 of Python
// computes it; manifests without it are read too. A manifest is untrusted: it is accepted only when it names exactly
// one file for every part of its layout.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tranship/file/format/npy.hpp>
#include <tranship/layout/distribution.hpp>

namespace tranship {

inline constexpr char manifest_name[] = "manifest.json";
/// A longer manifest is not read.
inline constexpr Index manifest_bytes_max = Index(1) << 27;
/// Files that a directory of parts has at most.
inline constexpr Index parts_max = 1'000'000;

struct Manifest {
  ArraySpec spec;
  /// The element type as the headers of the parts spell it.
  std::string descr;
  /// The names of the parts' files, by ordinal of the grid.
  std::vector<std::string> files;
  /// CRC-32 of each file, likewise; empty where it is not known, and no list where none is.
  std::vector<std::optional<std::uint32_t>> checksums = {};
  /// The array has 0 dimensions; the layout is of one element.
  bool is_scalar = false;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// "part-00007.npy" for rank 7.
std::string part_name(Rank rank);

/// The order of the elements in each part's file: fortran when the layout orders its dimensions in reverse. An element
/// is `count` of the type, which are then the last dimension, and stay last. Where the number is not known yet, an
/// order that only some number allows passes, for a later call to check. Throws `unsupported` for layouts that files
/// cannot have: other orders, gaps between elements, split complex numbers, more than `parts_max` parts.
StoredOrder stored_order(const ArraySpec& spec, std::optional<Index> count = std::nullopt);

/// The manifest of an array whose files have the names of `part_name`. Throws as `stored_order` does.
Manifest make_manifest(const ArraySpec& spec, std::string descr);

/// Parts in the order of their ranks, one a line. parse_manifest(format_manifest(x)) == x.
std::string format_manifest(const Manifest& manifest);

/// What all manifests have in common: the name of a file beside it, and a checksum as 8 hexadecimal digits. Both throw
/// `bad_file`, naming `where`.
void check_stored_name(const std::string& name, std::string_view where);
std::uint32_t checksum_of_digits(const std::string& digits, std::string_view where);

/// Fails with `bad_file`, `unsupported` (versions but 1, layouts that files cannot have) and `overflow`, naming the
/// key; messages are one printable line. "layout_text" is for people and not read.
Result<Manifest> parse_manifest(std::string_view text);
/// Reads the manifest of a directory; errors name its path. Fails with `io` too.
Result<Manifest> read_manifest(const std::string& directory);

}  // namespace tranship
