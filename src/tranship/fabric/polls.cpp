#include "tranship/fabric/polls.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <tranship/fabric/context.hpp>
#include <tranship/fabric/heap/symmetric_heap.hpp>
#include <tranship/memory/device/host_device.hpp>

namespace tranship::detail {
namespace {

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  constexpr std::uint64_t prime = 0x100000001b3;
  std::uint64_t hash = 0;
  for (; bytes.size() >= sizeof hash; bytes = bytes.subspan(sizeof hash)) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    hash = std::rotl(hash * prime, 29) ^ word;  // mixes high bits into low ones
  }
  for (const std::byte byte : bytes) hash = hash * prime ^ std::uint64_t(byte);
  return hash;
}

}  // namespace

int Polls::look_at_flags(const WaitNote& note) {
  Context& context = *world_.context_;
  if (!context.completes_at_once() && world_.heap().place().direct.is_empty()) context.poll_transport();
  return world_.look(note);
}

int Polls::look_at(WaitNote note, const CopyBlock& block, int width, const void* target) {
  // Loops poll small values. Anything larger is data, which is not worth reading again.
  constexpr std::size_t bytes_max = std::size_t(1) << 16;
  const std::size_t bytes = std::size_t(element_count(block)) * std::size_t(width);
  note.shows = WaitNote::Shows::place;
  if (bytes > bytes_max) {
    end_row();
    return world_.look(note);
  }
  CopyBlock from_target = block;
  std::copy_n(block.target_strides, block.dims, from_target.source_strides);
  std::vector<std::byte> seen(bytes);
  if (bytes > 0) copy_on_host(with_dense_target(from_target, width), width, target, seen.data());
  note.seen = hash_of(seen);
  return world_.look(note);
}

}  // namespace tranship::detail
