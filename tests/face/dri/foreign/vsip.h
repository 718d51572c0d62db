/* A VSIPL that is not tranship's, as small as dri_views.h needs it: blocks of the user's memory, float and double, real
 * and complex, and views that get elements. Admitted blocks are counted. */
#ifndef FOREIGN_VSIP_H
#define FOREIGN_VSIP_H

#include <stddef.h>
#include <stdlib.h>

typedef float vsip_scalar_f;
typedef double vsip_scalar_d;
typedef struct {
  float r, i;
} vsip_cscalar_f;
typedef struct {
  double r, i;
} vsip_cscalar_d;
typedef size_t vsip_index, vsip_length, vsip_offset;
typedef ptrdiff_t vsip_stride;
typedef enum { VSIP_MEM_NONE = 0 } vsip_memory_hint;
typedef int vsip_scalar_bl;
#define VSIP_TRUE 1

static int foreign_admitted = 0;
static int foreign_objects = 0;

/* One shape of views, of a block of any kind. */
#define FOREIGN_VIEW(C, S, T, BLOCK)                                                               \
  typedef struct {                                                                                 \
    BLOCK *block;                                                                                  \
    size_t offset, length[3];                                                                      \
    ptrdiff_t stride[3];                                                                           \
  } vsip_##C##S##view_##T;                                                                         \
  static inline BLOCK *vsip_##C##S##destroy_##T(vsip_##C##S##view_##T *view) {                     \
    BLOCK *block = view ? view->block : NULL;                                                      \
    foreign_objects -= view != NULL;                                                               \
    free(view);                                                                                    \
    return block;                                                                                  \
  }                                                                                                \
  static inline vsip_##C##S##view_##T *vsip_##C##S##putoffset_##T(vsip_##C##S##view_##T *view,     \
                                                                  vsip_offset offset) {            \
    view->offset = offset;                                                                         \
    return view;                                                                                   \
  }                                                                                                \
  static inline vsip_##C##S##view_##T *foreign_##C##S##view_##T(BLOCK *block, size_t offset) {     \
    vsip_##C##S##view_##T *view = (vsip_##C##S##view_##T *)calloc(1, sizeof *view);                \
    ++foreign_objects;                                                                             \
    view->block = block;                                                                           \
    view->offset = offset;                                                                         \
    return view;                                                                                   \
  }
#define FOREIGN_VIEWS(C, T, BLOCK)                                                                                  \
  FOREIGN_VIEW(C, v, T, BLOCK)                                                                                      \
  FOREIGN_VIEW(C, m, T, BLOCK)                                                                                      \
  FOREIGN_VIEW(C, t, T, BLOCK)                                                                                      \
  static inline vsip_##C##vview_##T *vsip_##C##vbind_##T(BLOCK *b, vsip_offset o, vsip_stride s, vsip_length n) {   \
    vsip_##C##vview_##T *v = foreign_##C##vview_##T(b, o);                                                          \
    v->stride[0] = s, v->length[0] = n;                                                                             \
    return v;                                                                                                       \
  }                                                                                                                 \
  static inline vsip_##C##mview_##T *vsip_##C##mbind_##T(BLOCK *b, vsip_offset o, vsip_stride cs, vsip_length cl,   \
                                                         vsip_stride rs, vsip_length rl) {                          \
    vsip_##C##mview_##T *v = foreign_##C##mview_##T(b, o);                                                          \
    v->stride[0] = rs, v->length[0] = rl, v->stride[1] = cs, v->length[1] = cl;                                     \
    return v;                                                                                                       \
  }                                                                                                                 \
  static inline vsip_##C##tview_##T *vsip_##C##tbind_##T(BLOCK *b, vsip_offset o, vsip_stride zs, vsip_length zl,   \
                                                         vsip_stride ys, vsip_length yl, vsip_stride xs,            \
                                                         vsip_length xl) {                                          \
    vsip_##C##tview_##T *v = foreign_##C##tview_##T(b, o);                                                          \
    v->stride[0] = xs, v->length[0] = xl, v->stride[1] = ys, v->length[1] = yl, v->stride[2] = zs, v->length[2] = zl; \
    return v;                                                                                                       \
  }                                                                                                                 \
  static inline size_t foreign_##C##at_##T(size_t o, const ptrdiff_t *s, size_t x, size_t y, size_t z) {            \
    return (size_t)((ptrdiff_t)o + s[0] * (ptrdiff_t)x + s[1] * (ptrdiff_t)y + s[2] * (ptrdiff_t)z);                \
  }
#define FOREIGN_REAL(T)                                                                                             \
  typedef struct {                                                                                                  \
    vsip_scalar_##T *data;                                                                                          \
  } vsip_block_##T;                                                                                                 \
  static inline vsip_block_##T *vsip_blockbind_##T(vsip_scalar_##T *data, vsip_length n, vsip_memory_hint hint) {   \
    vsip_block_##T *block = (vsip_block_##T *)malloc(sizeof *block);                                                \
    (void)n, (void)hint;                                                                                            \
    ++foreign_objects;                                                                                              \
    block->data = data;                                                                                             \
    return block;                                                                                                   \
  }                                                                                                                 \
  static inline int vsip_blockadmit_##T(vsip_block_##T *block, vsip_scalar_bl update) {                             \
    (void)block, (void)update;                                                                                      \
    ++foreign_admitted;                                                                                             \
    return 0;                                                                                                       \
  }                                                                                                                 \
  static inline vsip_scalar_##T *vsip_blockrelease_##T(vsip_block_##T *block, vsip_scalar_bl update) {              \
    (void)update;                                                                                                   \
    --foreign_admitted;                                                                                             \
    return block->data;                                                                                             \
  }                                                                                                                 \
  static inline void vsip_blockdestroy_##T(vsip_block_##T *block) { foreign_objects -= block != NULL, free(block); }                                  \
  FOREIGN_VIEWS(, T, vsip_block_##T)                                                                                \
  static inline vsip_scalar_##T vsip_vget_##T(const vsip_vview_##T *v, vsip_index x) {                              \
    return v->block->data[foreign_at_##T(v->offset, v->stride, x, 0, 0)];                                           \
  }                                                                                                                 \
  static inline vsip_scalar_##T vsip_mget_##T(const vsip_mview_##T *v, vsip_index y, vsip_index x) {                \
    return v->block->data[foreign_at_##T(v->offset, v->stride, x, y, 0)];                                           \
  }                                                                                                                 \
  static inline vsip_scalar_##T vsip_tget_##T(const vsip_tview_##T *v, vsip_index z, vsip_index y, vsip_index x) {  \
    return v->block->data[foreign_at_##T(v->offset, v->stride, x, y, z)];                                           \
  }
#define FOREIGN_COMPLEX(T)                                                                                          \
  typedef struct {                                                                                                  \
    vsip_scalar_##T *re, *im;                                                                                       \
  } vsip_cblock_##T;                                                                                                \
  static inline vsip_cblock_##T *vsip_cblockbind_##T(vsip_scalar_##T *re, vsip_scalar_##T *im, vsip_length n,       \
                                                     vsip_memory_hint hint) {                                       \
    vsip_cblock_##T *block = (vsip_cblock_##T *)malloc(sizeof *block);                                              \
    (void)n, (void)hint;                                                                                            \
    ++foreign_objects;                                                                                              \
    block->re = re, block->im = im;                                                                                 \
    return block;                                                                                                   \
  }                                                                                                                 \
  static inline int vsip_cblockadmit_##T(vsip_cblock_##T *block, vsip_scalar_bl update) {                           \
    (void)block, (void)update;                                                                                      \
    ++foreign_admitted;                                                                                             \
    return 0;                                                                                                       \
  }                                                                                                                 \
  static inline void vsip_cblockrelease_##T(vsip_cblock_##T *block, vsip_scalar_bl update, vsip_scalar_##T **re,    \
                                            vsip_scalar_##T **im) {                                                 \
    (void)update;                                                                                                   \
    --foreign_admitted;                                                                                             \
    *re = block->re, *im = block->im;                                                                               \
  }                                                                                                                 \
  static inline void vsip_cblockdestroy_##T(vsip_cblock_##T *block) { foreign_objects -= block != NULL, free(block); }                                \
  FOREIGN_VIEWS(c, T, vsip_cblock_##T)                                                                              \
  static inline vsip_cscalar_##T foreign_cget_##T(const vsip_cblock_##T *block, size_t at) {                        \
    vsip_cscalar_##T out;                                                                                           \
    out.r = block->im ? block->re[at] : block->re[2 * at];                                                          \
    out.i = block->im ? block->im[at] : block->re[2 * at + 1];                                                      \
    return out;                                                                                                     \
  }                                                                                                                 \
  static inline vsip_cscalar_##T vsip_cvget_##T(const vsip_cvview_##T *v, vsip_index x) {                           \
    return foreign_cget_##T(v->block, foreign_cat_##T(v->offset, v->stride, x, 0, 0));                              \
  }                                                                                                                 \
  static inline vsip_cscalar_##T vsip_cmget_##T(const vsip_cmview_##T *v, vsip_index y, vsip_index x) {             \
    return foreign_cget_##T(v->block, foreign_cat_##T(v->offset, v->stride, x, y, 0));                              \
  }                                                                                                                 \
  static inline vsip_cscalar_##T vsip_ctget_##T(const vsip_ctview_##T *v, vsip_index z, vsip_index y,               \
                                                vsip_index x) {                                                     \
    return foreign_cget_##T(v->block, foreign_cat_##T(v->offset, v->stride, x, y, z));                              \
  }                                                                                                                 \
  static inline vsip_scalar_##T vsip_real_##T(vsip_cscalar_##T x) { return x.r; }                                   \
  static inline vsip_scalar_##T vsip_imag_##T(vsip_cscalar_##T x) { return x.i; }

FOREIGN_REAL(f)
FOREIGN_REAL(d)
FOREIGN_COMPLEX(f)
FOREIGN_COMPLEX(d)

static inline int vsip_init(void *unused) {
  (void)unused;
  return 0;
}

#endif
