/*
 * VSIPL views of the buffers of a DRI channel. Included by <dri.h> where a <vsip.h> is found. Everything here is made of
 * public calls of VSIPL (blockbind, blockadmit, blockrelease, vbind, mbind, tbind and the destroy calls), and compiled
 * with the program, so it serves whatever VSIPL the program is compiled with.
 *
 * Four forms, for each type T of f d i si us li ul and, with a `c` before the shape, f and d:
 *
 *   vsip_cmview_f *m = DRI_Buffer_get_cmview_f(buffer, slice);            by linear slice number; NULL where refused
 *   vsip_cmview_f *m = DRI_Buffer_multid_get_cmview_f(buffer, x, y);      by one slice number per dimension of the view
 *   int code = DRI_Buffer_get_cmview(buffer, slice, &m);                  by an OUT parameter; chooses T by its type
 *   int code = DRI_Buffer_multid_get_cmview(buffer, x, y, &m);
 *
 * vview, mview and tview are vectors, matrices and tensors. The x of a view (along its rows) is dimension 0 of the data, y
 * is dimension 1, z is dimension 2, whatever the layout, where the data has as many dimensions as the view; DRI_Viewshape
 * in dri.h says what is shown where it has not. The element type must be that of the data. DRI_Error_detail says why a
 * view was refused.
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

/* Views go before their blocks: their keys are smaller. */
#define DRI_VIEW_KEY(dims, type, slice) (INT64_MIN + ((int64_t)(slice)*64 + (int64_t)(dims)*16 + (int64_t)(type)))
#define DRI_BLOCK_KEY(type) (-(int64_t)(type))

/* One slice number for each dimension of the view. */
#define DRI_NUMBERS_OF_v int x
#define DRI_NUMBERS_OF_m int x, int y
#define DRI_NUMBERS_OF_t int x, int y, int z
#define DRI_NUMBERS_v x
#define DRI_NUMBERS_m x, y
#define DRI_NUMBERS_t x, y, z

#define DRI_VIEWS_OF_BLOCK(C, T, BLOCK, TYPE, BIND, RELEASE)                                                           \
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
  static inline BLOCK *dri_##C##block_of_##T(struct dri_buffer *buffer, const DRI_Viewshape *shape) {                  \
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
  DRI_VIEWS_OF_SHAPE(C, v, 1, T, BLOCK, TYPE,                                                                          \
                     vsip_##C##vbind_##T(block, (vsip_offset)s.offset, (vsip_stride)s.stride[0],                       \
                                         (vsip_length)s.length[0]))                                                    \
  DRI_VIEWS_OF_SHAPE(C, m, 2, T, BLOCK, TYPE,                                                                          \
                     vsip_##C##mbind_##T(block, (vsip_offset)s.offset, (vsip_stride)s.stride[1],                       \
                                         (vsip_length)s.length[1], (vsip_stride)s.stride[0],                           \
                                         (vsip_length)s.length[0]))                                                    \
  DRI_VIEWS_OF_SHAPE(C, t, 3, T, BLOCK, TYPE,                                                                          \
                     vsip_##C##tbind_##T(block, (vsip_offset)s.offset, (vsip_stride)s.stride[2],                       \
                                         (vsip_length)s.length[2], (vsip_stride)s.stride[1],                           \
                                         (vsip_length)s.length[1], (vsip_stride)s.stride[0],                           \
                                         (vsip_length)s.length[0]))

#define DRI_VIEWS_OF_SHAPE(C, SHAPE, DIMS, T, BLOCK, TYPE, BIND)                                                       \
  static inline void dri_##C##SHAPE##view_end_##T(void *view) {                                                        \
    (void)vsip_##C##SHAPE##destroy_##T((vsip_##C##SHAPE##view_##T *)view);                                             \
  }                                                                                                                    \
  static inline int dri_##C##SHAPE##view_of_##T(struct dri_buffer *buffer, DRI_Viewshape s,                            \
                                                vsip_##C##SHAPE##view_##T **view) {                                    \
    const int64_t key = DRI_VIEW_KEY(DIMS, TYPE, s.slice);                                                             \
    BLOCK *block;                                                                                                      \
    vsip_##C##SHAPE##view_##T *made;                                                                                   \
    int code;                                                                                                          \
    if (view == NULL) return DRI_Error_report(DRI_ERR_ARGUMENT, "view is NULL");                                       \
    block = dri_##C##block_of_##T(buffer, &s);                                                                         \
    if (block == NULL) return DRI_Error_report(DRI_ERR_NO_MEMORY, "VSIPL made no block of the buffer");                \
    made = (vsip_##C##SHAPE##view_##T *)DRI_Buffer_attached(buffer, key);                                              \
    if (made == NULL) {                                                                                                \
      made = BIND;                                                                                                     \
      if (made == NULL) return DRI_Error_report(DRI_ERR_NO_MEMORY, "VSIPL made no view of the slice");                 \
      code = DRI_Buffer_attach(buffer, key, made, NULL, dri_##C##SHAPE##view_end_##T);                                 \
      if (code != DRI_SUCCESS) {                                                                                       \
        dri_##C##SHAPE##view_end_##T(made);                                                                            \
        return code;                                                                                                   \
      }                                                                                                                \
    }                                                                                                                  \
    *view = made;                                                                                                      \
    return DRI_SUCCESS;                                                                                                \
  }                                                                                                                    \
  static inline int dri_get_##C##SHAPE##view_##T(struct dri_buffer *buffer, int slice,                                 \
                                                 vsip_##C##SHAPE##view_##T **view) {                                   \
    DRI_Viewshape s;                                                                                                   \
    const int code = DRI_Buffer_get_viewshape(buffer, TYPE, DIMS, slice, &s);                                          \
    return code == DRI_SUCCESS ? dri_##C##SHAPE##view_of_##T(buffer, s, view) : code;                                  \
  }                                                                                                                    \
  static inline int dri_multid_get_##C##SHAPE##view_##T(struct dri_buffer *buffer, DRI_NUMBERS_OF_##SHAPE,             \
                                                        vsip_##C##SHAPE##view_##T **view) {                            \
    const int slices[DIMS] = {DRI_NUMBERS_##SHAPE};                                                                    \
    DRI_Viewshape s;                                                                                                   \
    const int code = DRI_Buffer_multid_get_viewshape(buffer, TYPE, DIMS, slices, &s);                                  \
    return code == DRI_SUCCESS ? dri_##C##SHAPE##view_of_##T(buffer, s, view) : code;                                  \
  }                                                                                                                    \
  static inline vsip_##C##SHAPE##view_##T *DRI_Buffer_get_##C##SHAPE##view_##T(struct dri_buffer *buffer,              \
                                                                              int slice) {                             \
    vsip_##C##SHAPE##view_##T *view = NULL;                                                                            \
    return dri_get_##C##SHAPE##view_##T(buffer, slice, &view) == DRI_SUCCESS ? view : NULL;                            \
  }                                                                                                                    \
  static inline vsip_##C##SHAPE##view_##T *DRI_Buffer_multid_get_##C##SHAPE##view_##T(struct dri_buffer *buffer,       \
                                                                                     DRI_NUMBERS_OF_##SHAPE) {         \
    vsip_##C##SHAPE##view_##T *view = NULL;                                                                            \
    return dri_multid_get_##C##SHAPE##view_##T(buffer, DRI_NUMBERS_##SHAPE, &view) == DRI_SUCCESS ? view : NULL;       \
  }

#define DRI_VIEWS_OF_REAL(T, TYPE)                                                                                     \
  DRI_VIEWS_OF_BLOCK(, T, vsip_block_##T, TYPE,                                                                        \
                     vsip_blockbind_##T((vsip_scalar_##T *)shape->real, (vsip_length)shape->elements, VSIP_MEM_NONE),  \
                     (void)vsip_blockrelease_##T(held->block, VSIP_TRUE))
#define DRI_VIEWS_OF_COMPLEX(T, TYPE)                                                                                  \
  DRI_VIEWS_OF_BLOCK(c, T, vsip_cblock_##T, TYPE,                                                                      \
                     vsip_cblockbind_##T((vsip_scalar_##T *)shape->real, (vsip_scalar_##T *)shape->imaginary,          \
                                         (vsip_length)shape->elements, VSIP_MEM_NONE),                                 \
                     vsip_scalar_##T * real; vsip_scalar_##T * imaginary;                                              \
                     vsip_cblockrelease_##T(held->block, VSIP_TRUE, &real, &imaginary))

DRI_VIEWS_OF_REAL(f, DRI_FLOAT)
DRI_VIEWS_OF_REAL(d, DRI_DOUBLE)
DRI_VIEWS_OF_COMPLEX(f, DRI_COMPLEX)
DRI_VIEWS_OF_COMPLEX(d, DRI_DOUBLE_COMPLEX)
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

/* The forms with an OUT parameter: the type of `view` chooses. */
#ifdef __cplusplus
#define DRI_VIEWS_OUT(C, SHAPE, T)                                                                                     \
  inline int DRI_Buffer_get_##C##SHAPE##view(struct dri_buffer *buffer, int slice, vsip_##C##SHAPE##view_##T **view) { \
    return dri_get_##C##SHAPE##view_##T(buffer, slice, view);                                                          \
  }                                                                                                                    \
  inline int DRI_Buffer_multid_get_##C##SHAPE##view(struct dri_buffer *buffer, DRI_NUMBERS_OF_##SHAPE,                 \
                                                    vsip_##C##SHAPE##view_##T **view) {                                \
    return dri_multid_get_##C##SHAPE##view_##T(buffer, DRI_NUMBERS_##SHAPE, view);                                     \
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
#undef DRI_NUMBERS_OF_v
#undef DRI_NUMBERS_OF_m
#undef DRI_NUMBERS_OF_t
#undef DRI_NUMBERS_v
#undef DRI_NUMBERS_m
#undef DRI_NUMBERS_t
}
#else
#ifdef DRI_VIEWS_OF_FLOATS_ONLY
#define DRI_VIEW_INTEGERS(get, shape)
#elif defined(TRANSHIP_VSIP_H)
#define DRI_VIEW_INTEGERS(get, shape)                                                                                  \
  , vsip_##shape##view_i **: get##shape##view_i, vsip_##shape##view_si **: get##shape##view_si,                        \
      vsip_##shape##view_us **: get##shape##view_us, vsip_##shape##view_li **: get##shape##view_li,                    \
      vsip_##shape##view_ul **: get##shape##view_ul
#else
#define DRI_VIEW_INTEGERS(get, shape)                                                                                  \
  , vsip_##shape##view_i **: get##shape##view_i, vsip_##shape##view_si **: get##shape##view_si
#endif
#define DRI_VIEW_OF_TYPE(get, shape, view)                                                                             \
  _Generic((view), vsip_##shape##view_f **: get##shape##view_f, vsip_##shape##view_d **: get##shape##view_d            \
               DRI_VIEW_INTEGERS(get, shape))
#define DRI_CVIEW_OF_TYPE(get, shape, view)                                                                            \
  _Generic((view), vsip_##shape##view_f **: get##shape##view_f, vsip_##shape##view_d **: get##shape##view_d)
#define DRI_Buffer_get_vview(buffer, slice, view) DRI_VIEW_OF_TYPE(dri_get_, v, view)(buffer, slice, view)
#define DRI_Buffer_get_mview(buffer, slice, view) DRI_VIEW_OF_TYPE(dri_get_, m, view)(buffer, slice, view)
#define DRI_Buffer_get_tview(buffer, slice, view) DRI_VIEW_OF_TYPE(dri_get_, t, view)(buffer, slice, view)
#define DRI_Buffer_get_cvview(buffer, slice, view) DRI_CVIEW_OF_TYPE(dri_get_, cv, view)(buffer, slice, view)
#define DRI_Buffer_get_cmview(buffer, slice, view) DRI_CVIEW_OF_TYPE(dri_get_, cm, view)(buffer, slice, view)
#define DRI_Buffer_get_ctview(buffer, slice, view) DRI_CVIEW_OF_TYPE(dri_get_, ct, view)(buffer, slice, view)
#define DRI_Buffer_multid_get_vview(buffer, x, view) \
  DRI_VIEW_OF_TYPE(dri_multid_get_, v, view)(buffer, x, view)
#define DRI_Buffer_multid_get_mview(buffer, x, y, view) \
  DRI_VIEW_OF_TYPE(dri_multid_get_, m, view)(buffer, x, y, view)
#define DRI_Buffer_multid_get_tview(buffer, x, y, z, view) \
  DRI_VIEW_OF_TYPE(dri_multid_get_, t, view)(buffer, x, y, z, view)
#define DRI_Buffer_multid_get_cvview(buffer, x, view) \
  DRI_CVIEW_OF_TYPE(dri_multid_get_, cv, view)(buffer, x, view)
#define DRI_Buffer_multid_get_cmview(buffer, x, y, view) \
  DRI_CVIEW_OF_TYPE(dri_multid_get_, cm, view)(buffer, x, y, view)
#define DRI_Buffer_multid_get_ctview(buffer, x, y, z, view) \
  DRI_CVIEW_OF_TYPE(dri_multid_get_, ct, view)(buffer, x, y, z, view)
#endif

#endif
