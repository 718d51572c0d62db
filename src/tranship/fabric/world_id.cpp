#include "tranship/fabric/world_id.hpp"

#include <cstddef>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/rank_scope.hpp>
#include <tranship/fabric/seam/backends.hpp>

namespace tranship {

WorldId WorldId::make() {
  for (const Backend& backend : available_backends())
    if (backend.make_id != nullptr) return backend.make_id();
  throw_error(ErrorCode::unsupported, "this build has no back-end whose ranks join by an id");
}

std::string to_string(const WorldId& id) {
  std::string out;
  for (const std::uint8_t byte : id.bytes) out += fmt::format("{:02x}", byte);
  return out;
}

WorldId parse_world_id(std::string_view text) {
  if (text.size() != 2 * WorldId::size_bytes)
    throw_error(ErrorCode::bad_text, "the text of a world id has {}; this one has {}",
                amount(2 * WorldId::size_bytes, "digit"), amount(text.size(), "character"));
  WorldId id;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char digit = text[i];
    const int value = digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
    if (value < 0)
      throw_error(ErrorCode::bad_text, "the text of a world id has digits 0 to 9 and a to f; character {} has code {}",
                  i + 1, static_cast<unsigned>(static_cast<unsigned char>(digit)));
    id.bytes[i / 2] = static_cast<std::uint8_t>(id.bytes[i / 2] << 4 | value);
  }
  return id;
}

}  // namespace tranship
