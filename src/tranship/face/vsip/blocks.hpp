// Private: The calls on blocks, for every element type. Invariant: memory of a library block is aligned to cache lines,
// and a failed allocation returns null.
#pragma once

#include <atomic>
#include <cstring>
#include <limits>
#include <new>

#include <tranship/face/vsip/checks.hpp>

namespace tranship::vsip {

inline constexpr std::align_val_t block_alignment{64};

inline void* allocate_elements(vsip_length length, std::size_t width) {
  if (length > vsip_length(PTRDIFF_MAX) / width) return nullptr;
  void* const memory = ::operator new(length* width + (length == 0), block_alignment, std::nothrow);
  // Sets every byte, so that a read before a write is found: a float or double is then NaN, an index is out of range.
  if constexpr (checking)
    if (memory) std::memset(memory, 0xff, length * width);
  return memory;
}

template <class B>
void derive_parts(B& block) {
  for (int part = 0; part < 2; ++part) {
    auto& derived = block.parts[part];
    derived.data = part ? block.im : block.re;
    derived.length = block.length;
    derived.step = block.step;
    derived.kind = BlockKind::derived;
    derived.admitted = block.admitted;
    derived.owner = &block;
  }
}

/// Sets the parts of a complex block to user memory.
template <class B, class R>
void set_parts(B& block, R* real, R* imaginary) {
  block.re = real;
  block.step = imaginary ? 1 : 2;
  block.im = imaginary ? imaginary : (real ? real + 1 : nullptr);
  derive_parts(block);
}

/// Destroys a block, and the memory that the library owns.
template <class B>
void free_block(B* block) {
  if constexpr (checking) {
    note_destroyed(block);
    if constexpr (B::complex)
      for (const auto& part : block->parts) note_destroyed(&part);
  }
  if (block->kind == BlockKind::library) {
    if constexpr (B::complex)
      ::operator delete(block->re, block_alignment);
    else
      ::operator delete(block->data, block_alignment);
  }
  delete block;
}

/// Registers a block and its parts with the checks. Destroys the block and returns null if there is no memory for that.
template <class B>
B* note_block(B* block) {
  if constexpr (checking) {
    bool all = note_alive(block);
    if constexpr (B::complex)
      for (const auto& part : block->parts) all = all && note_alive(&part);
    if (!all) {
      free_block(block);
      return nullptr;
    }
  }
  return block;
}

template <class B>
B* create_block(const char* call, vsip_length length) {
  if (!has_elements<1>(call, {length})) return nullptr;
  void* const memory = allocate_elements(length, sizeof(typename B::Element));
  if (!memory) return nullptr;
  B* const block = new (std::nothrow) B;
  if (!block) {
    ::operator delete(memory, block_alignment);
    return nullptr;
  }
  block->length = length;
  if constexpr (B::complex) {
    using R = typename B::Part;
    set_parts(*block, static_cast<R*>(memory), static_cast<R*>(nullptr));
  } else {
    block->data = static_cast<typename B::Element*>(memory);
  }
  return note_block(block);
}

/// Returns true if offsets can count the bytes of the block.
template <class B>
bool has_room(const char* call, vsip_length length) {
  constexpr std::size_t width = sizeof(typename B::Element);
  if constexpr (checking)
    if (length > vsip_length(PTRDIFF_MAX) / width) {
      report(call, "%zu elements of %zu bytes are more than memory has", length, width);
      return false;
    }
  return true;
}

template <class B>
B* bind_block(const char* call, typename B::User* array, vsip_length length) {
  if (!has_room<B>(call, length)) return nullptr;
  B* const block = new (std::nothrow) B;
  if (!block) return nullptr;
  block->data = reinterpret_cast<typename B::Element*>(array);
  block->length = length;
  block->kind = BlockKind::user;
  block->admitted = false;
  return note_block(block);
}

template <class B>
B* bind_block(const char* call, typename B::Part* real, typename B::Part* imaginary, vsip_length length) {
  if (!has_room<B>(call, length)) return nullptr;
  B* const block = new (std::nothrow) B;
  if (!block) return nullptr;
  block->length = length;
  block->kind = BlockKind::user;
  block->admitted = false;
  set_parts(*block, real, imaginary);
  return note_block(block);
}

template <class B>
bool is_user_block(const char* call, const B* block) {
  return usable_object(call, "block", block) && block && block->kind == BlockKind::user;
}

template <class B>
int admit(const char* call, B* block) {
  if (!is_user_block(call, block)) return 1;
  if constexpr (B::complex) {
    if (!block->re) return 1;
    block->admitted = true;
    derive_parts(*block);
  } else {
    if (!block->data) return 1;
    block->admitted = true;
  }
  return 0;
}

template <class B>
typename B::User* user_memory(const B& block) {
  return reinterpret_cast<typename B::User*>(block.data);
}
template <class B, class R>
void user_memory(const B& block, R** real, R** imaginary) {
  *real = block.re;
  *imaginary = block.step == 1 ? block.im : nullptr;
}

template <class B>
typename B::User* release(const char* call, B* block) {
  if (!is_user_block(call, block)) return nullptr;
  block->admitted = false;
  return user_memory(*block);
}

template <class B, class R>
void release(const char* call, B* block, R** real, R** imaginary) {
  if (!given_parts(call, real, imaginary)) return;
  *real = *imaginary = nullptr;
  if (!is_user_block(call, block)) return;
  block->admitted = false;
  derive_parts(*block);
  user_memory(*block, real, imaginary);
}

template <class B>
typename B::User* rebind(const char* call, B* block, typename B::User* array) {
  if (!is_user_block(call, block) || block->admitted) return nullptr;
  auto* const before = user_memory(*block);
  block->data = reinterpret_cast<typename B::Element*>(array);
  return before;
}

template <class B, class R>
void rebind(const char* call, B* block, R* new_real, R* new_imaginary, R** real, R** imaginary) {
  if (!given_parts(call, real, imaginary)) return;
  *real = *imaginary = nullptr;
  if (!is_user_block(call, block) || block->admitted) return;
  user_memory(*block, real, imaginary);
  set_parts(*block, new_real, new_imaginary);
}

template <class B>
typename B::User* find(const char* call, const B* block) {
  return is_user_block(call, block) && !block->admitted ? user_memory(*block) : nullptr;
}

template <class B, class R>
void find(const char* call, const B* block, R** real, R** imaginary) {
  if (!given_parts(call, real, imaginary)) return;
  *real = *imaginary = nullptr;
  if (is_user_block(call, block) && !block->admitted) user_memory(*block, real, imaginary);
}

template <class O>
void keep(const char* call, const char* what, O* object, tranship_vsip_keeper keeper) {
  if (usable_object(call, what, object)) object->keeper = keeper;
}

template <class B>
void destroy_block(const char* call, B* block) {
  if (!block || !usable_object(call, "block", block) || block->kind == BlockKind::derived || is_kept(*block)) return;
  free_block(block);
}

}  // namespace tranship::vsip
