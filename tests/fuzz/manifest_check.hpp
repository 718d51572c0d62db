// What must hold for any bytes that are taken for a manifest. Used by the libFuzzer program and by the seeded mutations
// of tests/file; `format` is a parameter so that a test can show that the check notices a wrong one.
#pragma once

#include <cctype>
#include <set>
#include <string>
#include <string_view>

#include <tranship/file/format/manifest.hpp>

namespace tranship::testing {

using ManifestFormat = std::string (*)(const Manifest&);

struct ManifestVerdict {
  bool accepted = false;
  /// Empty when all is well.
  std::string violation;
};

/// An accepted manifest names one plain file a part, and what is written of it reads as the same.
inline std::string violation_of(const Manifest& manifest, ManifestFormat format) {
  if (static_cast<Index>(manifest.files.size()) != manifest.spec.distribution.grid().size())
    return "not one file a part";
  if (std::set<std::string>(manifest.files.begin(), manifest.files.end()).size() != manifest.files.size())
    return "one file for two parts";
  for (const std::string& file : manifest.files)
    if (file.empty() || file.find('/') != std::string::npos || file.find("..") != std::string::npos ||
        file.find('\0') != std::string::npos)
      return "a file outside the directory";
  const Result<NpyElement> element = parse_npy_descr(manifest.descr);
  if (!element || element.value().type != manifest.spec.type) return "a descr of another type";
  const Result<Manifest> again = parse_manifest(format(manifest));
  if (!again) return "what was written is refused: " + again.error().message();
  if (!(again.value() == manifest)) return "what was written says something else";
  return "";
}

inline ManifestVerdict check_manifest(std::string_view text, ManifestFormat format) {
  const Result<Manifest> manifest = parse_manifest(text);
  if (manifest) return {true, violation_of(manifest.value(), format)};
  for (const char c : manifest.error().message())
    if (!std::isprint(static_cast<unsigned char>(c))) return {false, "a message that is not one printable line"};
  const ErrorCode code = manifest.error().code();
  if (code != ErrorCode::bad_file && code != ErrorCode::unsupported && code != ErrorCode::overflow)
    return {false, std::string("the code ") + name_of(code)};
  return {};
}

}  // namespace tranship::testing
