// Private: Manifest, the description of a directory of parts and its files, in JSON that people can read, too.
//
//   {"tranship_manifest": 1, "layout": {...}, "layout_text": "...", "descr": "<f8",
//    "parts": [{"rank": 0, "file": "part-00000.npy", "shape": [86, 403], "crc32": "8d0f2b17"}, ...]}
//
// An array of 0 dimensions also has "dimensions": 0. "crc32" is the checksum of the whole file, as Python's zlib.crc32
// computes it; manifests without it are read, too. A manifest is untrusted: it is accepted only if it names exactly one
// file for every part of its layout.
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
/// Longer manifests are not read.
inline constexpr Index manifest_bytes_max = Index(1) << 27;
/// Limit on the files of a directory of parts.
inline constexpr Index parts_max = 1'000'000;

struct Manifest {
  ArraySpec spec;
  /// The element type as the headers of the parts spell it.
  std::string descr;
  /// The names of the parts' files, by ordinal of the grid.
  std::vector<std::string> files;
  /// CRC-32 of each file, by ordinal; empty if unknown. The list is empty if no checksum is known.
  std::vector<std::optional<std::uint32_t>> checksums = {};
  /// True if the array has 0 dimensions; the layout then has one element.
  bool is_scalar = false;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// Returns the file name of a rank's part: "part-00007.npy" for rank 7.
std::string part_name(Rank rank);

/// Returns the order of the elements in each part's file: fortran if the layout orders its dimensions in reverse. An
/// element is `count` numbers of the type; these are then the last dimension, and stay last. If the number is not known
/// yet, an order that is legal for some number is accepted, and a later call must check it. Throws `unsupported` for
/// layouts that files cannot have: other orders, gaps between elements, split complex numbers, more than `parts_max`
/// parts.
StoredOrder stored_order(const ArraySpec& spec, std::optional<Index> count = std::nullopt);

/// Makes the manifest of an array whose files have the names of `part_name`. Throws as `stored_order` does.
Manifest make_manifest(const ArraySpec& spec, std::string descr);

/// Lists parts in the order of their ranks, one per line. parse_manifest(format_manifest(x)) == x.
std::string format_manifest(const Manifest& manifest);

/// Check the entries that all manifests share: the name of a file beside the manifest, and a checksum of 8 hexadecimal
/// digits. Both throw `bad_file`, naming `where`.
void check_stored_name(const std::string& name, std::string_view where);
std::uint32_t checksum_of_digits(const std::string& digits, std::string_view where);

/// Fails with `bad_file`, `unsupported` (versions other than 1, layouts that files cannot have) and `overflow`, naming
/// the key; each message is one printable line. Does not read "layout_text", which is for people.
Result<Manifest> parse_manifest(std::string_view text);
/// Reads the manifest of a directory; errors name its path. Fails with `io`, too.
Result<Manifest> read_manifest(const std::string& directory);

}  // namespace tranship
