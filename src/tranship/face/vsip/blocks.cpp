// Blocks: creation, user memory, destruction.
#include "tranship/face/vsip/blocks.hpp"

using namespace tranship::vsip;

#define TRANSHIP_DEFINE(T, U)                                                                        \
  vsip_block_##T* vsip_blockcreate_##T(vsip_length length, vsip_memory_hint) {                       \
    return create_block<vsip_block_##T>("vsip_blockcreate_" #T, length);                             \
  }                                                                                                  \
  vsip_block_##T* vsip_blockbind_##T(vsip_scalar_##U* array, vsip_length length, vsip_memory_hint) { \
    return bind_block<vsip_block_##T>("vsip_blockbind_" #T, array, length);                          \
  }                                                                                                  \
  int vsip_blockadmit_##T(vsip_block_##T* block, vsip_scalar_bl) {                                   \
    return admit("vsip_blockadmit_" #T, block);                                                      \
  }                                                                                                  \
  vsip_scalar_##U* vsip_blockrelease_##T(vsip_block_##T* block, vsip_scalar_bl) {                    \
    return release("vsip_blockrelease_" #T, block);                                                  \
  }                                                                                                  \
  vsip_scalar_##U* vsip_blockrebind_##T(vsip_block_##T* block, vsip_scalar_##U* array) {             \
    return rebind("vsip_blockrebind_" #T, block, array);                                             \
  }                                                                                                  \
  vsip_scalar_##U* vsip_blockfind_##T(const vsip_block_##T* block) {                                 \
    return find("vsip_blockfind_" #T, block);                                                        \
  }                                                                                                  \
  void vsip_blockdestroy_##T(vsip_block_##T* block) {                                                \
    destroy_block("vsip_blockdestroy_" #T, block);                                                   \
  }                                                                                                  \
  void tranship_vsip_blockkeep_##T(vsip_block_##T* block, tranship_vsip_keeper keeper) {             \
    keep("tranship_vsip_blockkeep_" #T, "block", block, keeper);                                     \
  }
TRANSHIP_VSIP_BLOCKS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE

#define TRANSHIP_DEFINE(T)                                                                                      \
  vsip_cblock_##T* vsip_cblockcreate_##T(vsip_length length, vsip_memory_hint) {                                \
    return create_block<vsip_cblock_##T>("vsip_cblockcreate_" #T, length);                                      \
  }                                                                                                             \
  vsip_cblock_##T* vsip_cblockbind_##T(vsip_scalar_##T* real, vsip_scalar_##T* imaginary, vsip_length length,   \
                                       vsip_memory_hint) {                                                      \
    return bind_block<vsip_cblock_##T>("vsip_cblockbind_" #T, real, imaginary, length);                         \
  }                                                                                                             \
  int vsip_cblockadmit_##T(vsip_cblock_##T* block, vsip_scalar_bl) {                                            \
    return admit("vsip_cblockadmit_" #T, block);                                                                \
  }                                                                                                             \
  void vsip_cblockrelease_##T(vsip_cblock_##T* block, vsip_scalar_bl, vsip_scalar_##T** real,                   \
                              vsip_scalar_##T** imaginary) {                                                    \
    release("vsip_cblockrelease_" #T, block, real, imaginary);                                                  \
  }                                                                                                             \
  void vsip_cblockrebind_##T(vsip_cblock_##T* block, vsip_scalar_##T* new_real, vsip_scalar_##T* new_imaginary, \
                             vsip_scalar_##T** real, vsip_scalar_##T** imaginary) {                             \
    rebind("vsip_cblockrebind_" #T, block, new_real, new_imaginary, real, imaginary);                           \
  }                                                                                                             \
  void vsip_cblockfind_##T(const vsip_cblock_##T* block, vsip_scalar_##T** real, vsip_scalar_##T** imaginary) { \
    find("vsip_cblockfind_" #T, block, real, imaginary);                                                        \
  }                                                                                                             \
  void vsip_cblockdestroy_##T(vsip_cblock_##T* block) {                                                         \
    destroy_block("vsip_cblockdestroy_" #T, block);                                                             \
  }                                                                                                             \
  void tranship_vsip_cblockkeep_##T(vsip_cblock_##T* block, tranship_vsip_keeper keeper) {                      \
    keep("tranship_vsip_cblockkeep_" #T, "block", block, keeper);                                               \
  }
TRANSHIP_VSIP_FLOATS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE

namespace {
std::atomic<long> begun{0};
}

int vsip_init(void*) {
  ++begun;
  return 0;
}

int vsip_finalize(void*) {
  if (begun.fetch_sub(1) > 0) return 0;
  ++begun;
  return 1;
}

vsip_cmplx_mem vsip_cstorage(void) {
  return VSIP_CMPLX_INTERLEAVED;
}
