/*
 * VSIPL views of the buffers of a DRI channel. Included by <dri.h> where a <vsip.h> is found. Everything here is made of
 * public calls of VSIPL (blockbind, blockadmit, blockrelease, vbind, mbind, tbind and the destroy calls), and compiled
 * with the program, so it serves whatever VSIPL the program is compiled with.
 *
 * Three forms, for each type T of f d i si us li ul and, with a `c` before the shape, f and d:
 *
 *   vsip_cmview_f *m = DRI_Buffer_get_cmview_f(buffer, slice);            by linear slice number; NULL where refused
 *   vsip_cmview_f *m = DRI_Buffer_multid_get_cmview_f(buffer, x, y);      by one slice number per dimension of the view
 *   int code = DRI_Buffer_get_cmview(buffer, slice, &m);                  by an OUT parameter; chooses T by its type
 *
 * vview, mview and tview are vectors, matrices and tensors. The x of a view (along its rows) is dimension 0 of the data, y
 * is dimension 1, z is dimension 2, whatever the layout. A slice with fewer dimensions than the view is shown with lengths
 * of 1; one with more must have lengths of 1 in all that are too many. The element type must be that of the data.
 *
 * A view belongs to its channel, and is the same one each time that the buffer comes. It may be used while the buffer is
 * held. Getting a view admits the buffer's block; putting the buffer releases it.
 */
#ifndef TRANSHIP_DRI_VIEWS_H
#define TRANSHIP_DRI_VIEWS_H

#include <stdint.h>
#include <stdlib.h>

#include <vsip.h>

#ifdef __cplusplus
extern "C++" {
#endif

/* The dimensions of a slice that a view shows, x first. */
typedef struct {
  void *real, *imaginary;
  size_t elements; /* of the block */
  int64_t offset;
  int64_t length[3], stride[3];
} dri_view_shape;

static inline int dri_view_shape_of(const struct dri_buffer *buffer, int slice, int dims, size_t element_bytes,
                                    DRI_Dataspec type, DRI_Dataspec split_type, dri_view_shape *shape) {
  DRI_Blockinfo info;
  DRI_Dataspec found;
  size_t bytes;
  int kept[DRI_DIMS_MAX];
  int count, d, code;
  if ((code = DRI_Buffer_get_memory(buffer, &shape->real, &shape->imaginary)) != DRI_SUCCESS) return code;
  if ((code = DRI_Buffer_get_type(buffer, &found)) != DRI_SUCCESS) return code;
  if (found != type && found != split_type) return DRI_ERR_MISMATCH;
  if ((code = DRI_Buffer_get_bytes(buffer, &bytes)) != DRI_SUCCESS) return code;
  if ((code = DRI_Buffer_get_slice(buffer, slice, &info)) != DRI_SUCCESS) return code;
  shape->elements = bytes / (found == split_type && split_type != type ? element_bytes / 2 : element_bytes);
  shape->offset = info.offset;
  count = info.ndims;
  for (d = 0; d < count; ++d) kept[d] = d;
  while (count > dims) {
    for (d = count - 1; d >= 0 && info.dims[kept[d]].length != 1; --d) continue;
    if (d < 0) return DRI_ERR_MISMATCH;
    for (--count; d < count; ++d) kept[d] = kept[d + 1];
  }
  for (d = 0; d < 3; ++d) {
    shape->length[d] = d < count ? info.dims[kept[d]].length : 1;
    shape->stride[d] = d < count ? info.dims[kept[d]].stride : 1;
  }
  return DRI_SUCCESS;
}

static inline int dri_view_number(const struct dri_buffer *buffer, int x, int y, int z, int *slice) {
  int slices[DRI_DIMS_MAX] = {0};
  slices[0] = x;
  slices[1] = y;
  slices[2] = z;
  return DRI_Buffer_get_slice_number(buffer, slices, slice);
}

/* Views go before their blocks: their keys are smaller. */
#define DRI_VIEW_KEY(shape, type, slice) ((int64_t)(shape) * 1000 + (int64_t)(type) + ((int64_t)(slice) << 32))
#define DRI_BLOCK_KEY(type) (INT64_MAX - (int64_t)(type))

#define DRI_VIEWS_OF_BLOCK(C, T, BLOCK, SCALAR, TYPE, SPLIT, BIND, RELEASE)                                            \
  typedef struct {                                                                                                     \
    BLOCK *block;                                                                                                      \
    int is_admitted;                                                                                                   \
  } dri_##C##block_##T;                                                                                                \
  static inline void dri_##C##block_put_##T(void *value) {                                                             \
    dri_##C##block_##T *held = (dri_##C##block_##T *)value;                                                            \
    if (held->is_admitted) {                                                                                           \
      RELEASE;                                                                                                         \
    }                                                                                                                  \
    held->is_admitted = 0;                                                                                             \
  }                                                                                                                    \
  static inline void dri_##C##block_end_##T(void *value) {                                                             \
    dri_##C##block_put_##T(value);                                                                                     \
    vsip_##C##blockdestroy_##T(((dri_##C##block_##T *)value)->block);                                                  \
    free(value);                                                                                                       \
  }                                                                                                                    \
  static inline BLOCK *dri_##C##block_of_##T(struct dri_buffer *buffer, const dri_view_shape *shape) {                 \
    dri_##C##block_##T *held = (dri_##C##block_##T *)DRI_Buffer_attached(buffer, DRI_BLOCK_KEY(TYPE));                 \
    if (held == NULL) {                                                                                                \
      held = (dri_##C##block_##T *)calloc(1, sizeof *held);                                                            \
      if (held == NULL) return NULL;                                                                                   \
      held->block = BIND;                                                                                              \
      if (held->block == NULL || DRI_Buffer_attach(buffer, DRI_BLOCK_KEY(TYPE), held, dri_##C##block_put_##T,          \
                                                   dri_##C##block_end_##T) != DRI_SUCCESS) {                           \
        if (held->block != NULL) vsip_##C##blockdestroy_##T(held->block);                                              \
        free(held);                                                                                                    \
        return NULL;                                                                                                   \
      }                                                                                                                \
    }                                                                                                                  \
    if (!held->is_admitted && vsip_##C##blockadmit_##T(held->block, VSIP_TRUE) != 0) return NULL;                      \
    held->is_admitted = 1;                                                                                             \
    return held->block;                                                                                                \
  }                                                                                                                    \
  DRI_VIEWS_OF_SHAPE(C, v, 1, T, BLOCK, SCALAR, TYPE, SPLIT,                                                           \
                     vsip_##C##vbind_##T(block, (vsip_offset)s.offset, (vsip_stride)s.stride[0],                       \
                                         (vsip_length)s.length[0]))                                                    \
  DRI_VIEWS_OF_SHAPE(C, m, 2, T, BLOCK, SCALAR, TYPE, SPLIT,                                                           \
                     vsip_##C##mbind_##T(block, (vsip_offset)s.offset, (vsip_stride)s.stride[1],                       \
                                         (vsip_length)s.length[1], (vsip_stride)s.stride[0],                           \
                                         (vsip_length)s.length[0]))                                                    \
  DRI_VIEWS_OF_SHAPE(C, t, 3, T, BLOCK, SCALAR, TYPE, SPLIT,                                                           \
                     vsip_##C##tbind_##T(block, (vsip_offset)s.offset, (vsip_stride)s.stride[2],                       \
                                         (vsip_length)s.length[2], (vsip_stride)s.stride[1],                           \
                                         (vsip_length)s.length[1], (vsip_stride)s.stride[0],                           \
                                         (vsip_length)s.length[0]))                                                    \
  static inline vsip_##C##vview_##T *DRI_Buffer_multid_get_##C##vview_##T(struct dri_buffer *buffer, int x) {          \
    int slice;                                                                                                         \
    return dri_view_number(buffer, x, 0, 0, &slice) == DRI_SUCCESS ? DRI_Buffer_get_##C##vview_##T(buffer, slice)      \
                                                                   : NULL;                                             \
  }                                                                                                                    \
  static inline vsip_##C##mview_##T *DRI_Buffer_multid_get_##C##mview_##T(struct dri_buffer *buffer, int x, int y) {   \
    int slice;                                                                                                         \
    return dri_view_number(buffer, x, y, 0, &slice) == DRI_SUCCESS ? DRI_Buffer_get_##C##mview_##T(buffer, slice)      \
                                                                   : NULL;                                             \
  }                                                                                                                    \
  static inline vsip_##C##tview_##T *DRI_Buffer_multid_get_##C##tview_##T(struct dri_buffer *buffer, int x, int y,     \
                                                                          int z) {                                     \
    int slice;                                                                                                         \
    return dri_view_number(buffer, x, y, z, &slice) == DRI_SUCCESS ? DRI_Buffer_get_##C##tview_##T(buffer, slice)      \
                                                                   : NULL;                                             \
  }

#define DRI_VIEWS_OF_SHAPE(C, SHAPE, DIMS, T, BLOCK, SCALAR, TYPE, SPLIT, BIND)                                        \
  static inline void dri_##C##SHAPE##view_end_##T(void *view) {                                                        \
    (void)vsip_##C##SHAPE##destroy_##T((vsip_##C##SHAPE##view_##T *)view);                                             \
  }                                                                                                                    \
  static inline int dri_get_##C##SHAPE##view_##T(struct dri_buffer *buffer, int slice,                                 \
                                                 vsip_##C##SHAPE##view_##T **view) {                                   \
    dri_view_shape s;                                                                                                  \
    BLOCK *block;                                                                                                      \
    vsip_##C##SHAPE##view_##T *made;                                                                                   \
    int code = dri_view_shape_of(buffer, slice, DIMS, sizeof(SCALAR), TYPE, SPLIT, &s);                                \
    if (code != DRI_SUCCESS) return code;                                                                              \
    if (view == NULL) return DRI_ERR_ARGUMENT;                                                                         \
    block = dri_##C##block_of_##T(buffer, &s);                                                                         \
    if (block == NULL) return DRI_ERR_NO_MEMORY;                                                                       \
    made = (vsip_##C##SHAPE##view_##T *)DRI_Buffer_attached(buffer, DRI_VIEW_KEY(DIMS, TYPE, slice));                  \
    if (made == NULL) {                                                                                                \
      made = BIND;                                                                                                     \
      if (made == NULL) return DRI_ERR_NO_MEMORY;                                                                      \
      code = DRI_Buffer_attach(buffer, DRI_VIEW_KEY(DIMS, TYPE, slice), made, NULL, dri_##C##SHAPE##view_end_##T);     \
      if (code != DRI_SUCCESS) {                                                                                       \
        dri_##C##SHAPE##view_end_##T(made);                                                                            \
        return code;                                                                                                   \
      }                                                                                                                \
    }                                                                                                                  \
    *view = made;                                                                                                      \
    return DRI_SUCCESS;                                                                                                \
  }                                                                                                                    \
  static inline vsip_##C##SHAPE##view_##T *DRI_Buffer_get_##C##SHAPE##view_##T(struct dri_buffer *buffer,              \
                                                                              int slice) {                             \
    vsip_##C##SHAPE##view_##T *view = NULL;                                                                            \
    return dri_get_##C##SHAPE##view_##T(buffer, slice, &view) == DRI_SUCCESS ? view : NULL;                            \
  }

#define DRI_VIEWS_OF_REAL(T, TYPE)                                                                                     \
  DRI_VIEWS_OF_BLOCK(, T, vsip_block_##T, vsip_scalar_##T, TYPE, TYPE,                                                 \
                     vsip_blockbind_##T((vsip_scalar_##T *)shape->real, (vsip_length)shape->elements, VSIP_MEM_NONE),  \
                     (void)vsip_blockrelease_##T(held->block, VSIP_TRUE))
#define DRI_VIEWS_OF_COMPLEX(T, TYPE, SPLIT)                                                                           \
  DRI_VIEWS_OF_BLOCK(c, T, vsip_cblock_##T, vsip_cscalar_##T, TYPE, SPLIT,                                             \
                     vsip_cblockbind_##T((vsip_scalar_##T *)shape->real, (vsip_scalar_##T *)shape->imaginary,          \
                                         (vsip_length)shape->elements, VSIP_MEM_NONE),                                 \
                     vsip_scalar_##T * real; vsip_scalar_##T * imaginary;                                              \
                     vsip_cblockrelease_##T(held->block, VSIP_TRUE, &real, &imaginary))

DRI_VIEWS_OF_REAL(f, DRI_FLOAT)
DRI_VIEWS_OF_REAL(d, DRI_DOUBLE)
DRI_VIEWS_OF_COMPLEX(f, DRI_COMPLEX, DRI_COMPLEX_SPLIT)
DRI_VIEWS_OF_COMPLEX(d, DRI_DOUBLE_COMPLEX, DRI_DOUBLE_COMPLEX_SPLIT)
/* Another VSIPL may lack some integers: it is asked for those of its profile alone. */
#ifndef DRI_VIEWS_OF_FLOATS_ONLY
DRI_VIEWS_OF_REAL(i, DRI_INTEGER)
DRI_VIEWS_OF_REAL(si, DRI_SHORT)
#ifdef TRANSHIP_VSIP_H
DRI_VIEWS_OF_REAL(us, DRI_UNSIGNED_SHORT)
DRI_VIEWS_OF_REAL(li, DRI_LONG)
DRI_VIEWS_OF_REAL(ul, DRI_UNSIGNED_LONG)
#endif
#endif

#undef DRI_VIEWS_OF_REAL
#undef DRI_VIEWS_OF_COMPLEX
#undef DRI_VIEWS_OF_SHAPE
#undef DRI_VIEWS_OF_BLOCK

/* The form with an OUT parameter: the type of `view` chooses. */
#ifdef __cplusplus
#define DRI_VIEWS_OUT(C, SHAPE, T)                                                                                     \
  inline int DRI_Buffer_get_##C##SHAPE##view(struct dri_buffer *buffer, int slice, vsip_##C##SHAPE##view_##T **view) { \
    return dri_get_##C##SHAPE##view_##T(buffer, slice, view);                                                          \
  }
#define DRI_VIEWS_OUT_OF(C, T) DRI_VIEWS_OUT(C, v, T) DRI_VIEWS_OUT(C, m, T) DRI_VIEWS_OUT(C, t, T)
DRI_VIEWS_OUT_OF(, f)
DRI_VIEWS_OUT_OF(, d)
DRI_VIEWS_OUT_OF(c, f)
DRI_VIEWS_OUT_OF(c, d)
#ifndef DRI_VIEWS_OF_FLOATS_ONLY
DRI_VIEWS_OUT_OF(, i)
DRI_VIEWS_OUT_OF(, si)
#ifdef TRANSHIP_VSIP_H
DRI_VIEWS_OUT_OF(, us)
DRI_VIEWS_OUT_OF(, li)
DRI_VIEWS_OUT_OF(, ul)
#endif
#endif
#undef DRI_VIEWS_OUT_OF
#undef DRI_VIEWS_OUT
}
#else
#ifdef DRI_VIEWS_OF_FLOATS_ONLY
#define DRI_VIEW_INTEGERS(shape)
#elif defined(TRANSHIP_VSIP_H)
#define DRI_VIEW_INTEGERS(shape)                                                                                       \
  , vsip_##shape##view_i **: dri_get_##shape##view_i, vsip_##shape##view_si **: dri_get_##shape##view_si,              \
      vsip_##shape##view_us **: dri_get_##shape##view_us, vsip_##shape##view_li **: dri_get_##shape##view_li,          \
      vsip_##shape##view_ul **: dri_get_##shape##view_ul
#else
#define DRI_VIEW_INTEGERS(shape)                                                                                       \
  , vsip_##shape##view_i **: dri_get_##shape##view_i, vsip_##shape##view_si **: dri_get_##shape##view_si
#endif
#define DRI_VIEW_OF_TYPE(shape, buffer, slice, view)                                                                   \
  _Generic((view), vsip_##shape##view_f **: dri_get_##shape##view_f, vsip_##shape##view_d **: dri_get_##shape##view_d  \
               DRI_VIEW_INTEGERS(shape))(buffer, slice, view)
#define DRI_CVIEW_OF_TYPE(shape, buffer, slice, view)                                                                  \
  _Generic((view), vsip_##shape##view_f **: dri_get_##shape##view_f, vsip_##shape##view_d **: dri_get_##shape##view_d)( \
      buffer, slice, view)
#define DRI_Buffer_get_vview(buffer, slice, view) DRI_VIEW_OF_TYPE(v, buffer, slice, view)
#define DRI_Buffer_get_mview(buffer, slice, view) DRI_VIEW_OF_TYPE(m, buffer, slice, view)
#define DRI_Buffer_get_tview(buffer, slice, view) DRI_VIEW_OF_TYPE(t, buffer, slice, view)
#define DRI_Buffer_get_cvview(buffer, slice, view) DRI_CVIEW_OF_TYPE(cv, buffer, slice, view)
#define DRI_Buffer_get_cmview(buffer, slice, view) DRI_CVIEW_OF_TYPE(cm, buffer, slice, view)
#define DRI_Buffer_get_ctview(buffer, slice, view) DRI_CVIEW_OF_TYPE(ct, buffer, slice, view)
#endif

#endif
