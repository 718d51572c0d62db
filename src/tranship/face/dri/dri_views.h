/*
 * VSIPL views of the buffers of a DRI channel. <dri.h> includes this header if a <vsip.h> is found. Everything here
 * uses only public calls of VSIPL (blockbind, blockadmit, blockrelease, vbind, mbind, tbind and the destroy calls) and
 * is compiled with the program, so it works with the VSIPL of the program.
 *
 * Four forms, for each type T of f d i si us li ul and, with a `c` before the shape, f and d:
 *
 *   vsip_cmview_f *m = DRI_Buffer_get_cmview_f(buffer, slice);            by linear slice number; NULL where refused
 *   vsip_cmview_f *m = DRI_Buffer_multid_get_cmview_f(buffer, x, y);      by one slice number per dimension of the view
 *   int code = DRI_Buffer_get_cmview(buffer, slice, &m);                  by an OUT parameter; chooses T by its type
 *   int code = DRI_Buffer_multid_get_cmview(buffer, x, y, &m);
 *
 * Before C11, C cannot choose by types, and the latter two are the forms of float. Two more forms serve any type:
 *
 *   int code = DRI_Buffer_get_view(buffer, slice, &m);     chooses shape and T by the type of m; for a void *, a vector
 *                                                          of the element type that the buffer has
 *   int code = DRI_Buffer_get_dvview(buffer, slice, &v);   the same for vectors only
 *
 * Before C11 both take the address of any pointer, which becomes a vector of the buffer's element type:
 * DRI_Buffer_get_type says which type that is.
 *
 * vview, mview and tview are vectors, matrices and tensors. If the data has as many dimensions as the view, x (along
 * the rows of the view) is dimension 0 of the data, y is dimension 1 and z is dimension 2, whatever the layout;
 * otherwise see DRI_Viewshape in dri.h. The element type must be that of the data. DRI_Error_detail says why a view was
 * refused.
 *
 * Each call makes a new view, as the layout says. The program may change and destroy it until the buffer is put, which
 * destroys the views that are left. Its block belongs to the channel: it is admitted while the buffer is held, and the
 * program's calls do not destroy it. A program that holds a buffer for long destroys the views that it gets, or reuses
 * them.
 */
#ifndef TRANSHIP_DRI_VIEWS_H
#define TRANSHIP_DRI_VIEWS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <vsip.h>

#ifdef __cplusplus
extern "C++" {
#endif

#define DRI_BLOCK_KEY(type) (-(int64_t)(type))

/* A call that destroys a view or a block asks DRI_Loan_stays first. tranship's VSIPL does so itself; for another VSIPL,
 * the calls that this header substitutes for the destroy calls do (below). */
#ifdef TRANSHIP_VSIP_H
#define DRI_VIEWS_KEEP(NAME, T, object) tranship_vsip_##NAME##keep_##T(object, DRI_Loan_stays)
#define DRI_VIEWS_DESTROY(CS, CB, T)
#define DRI_BLOCKS_DESTROY(CB, T)
/* Admitting an admitted block does nothing, and the program may have released it. */
#define DRI_VIEWS_IS_ADMITTED(held) 0
#else
#define DRI_VIEWS_KEEP(NAME, T, object) (void)0
#define DRI_VIEWS_DESTROY(CS, CB, T)                                                          \
  DRI_INLINE_ vsip_##CB##_##T *dri_##CS##destroy_##T(vsip_##CS##view_##T *view) {             \
    (void)DRI_Loan_stays(view);                                                               \
    return vsip_##CS##destroy_##T(view);                                                      \
  }                                                                                           \
  DRI_INLINE_ void dri_##CS##alldestroy_##T(vsip_##CS##view_##T *view) {                      \
    if (view != NULL) dri_##CB##destroy_##T(dri_##CS##destroy_##T(view));                     \
  }
#define DRI_BLOCKS_DESTROY(CB, T)                                 \
  DRI_INLINE_ void dri_##CB##destroy_##T(vsip_##CB##_##T *block) { \
    if (!DRI_Loan_stays(block)) vsip_##CB##destroy_##T(block);    \
  }
#define DRI_VIEWS_IS_ADMITTED(held) (held)->is_admitted
#endif

/* Takes one slice number for each dimension of the view. */
#define DRI_NUMBERS_OF_1 int x
#define DRI_NUMBERS_OF_2 int x, int y
#define DRI_NUMBERS_OF_3 int x, int y, int z
#define DRI_NUMBERS_TO_1(slices) (slices)[0] = x
#define DRI_NUMBERS_TO_2(slices) (slices)[0] = x, (slices)[1] = y
#define DRI_NUMBERS_TO_3(slices) (slices)[0] = x, (slices)[1] = y, (slices)[2] = z
#define DRI_NUMBERS_1 x
#define DRI_NUMBERS_2 x, y
#define DRI_NUMBERS_3 x, y, z

/* CB is block or cblock; V, M and TT are the letters of the shapes. BIND makes a block of `shape`, and RELEASE releases
 * held->block and sets `real` to the address that it had. */
#define DRI_VIEWS_OF_BLOCK(V, M, TT, CB, T, TYPE, BIND, RELEASE)                                                       \
  typedef struct {                                                                                                     \
    vsip_##CB##_##T *block;                                                                                            \
    void *real, *imaginary;                                                                                            \
    int is_admitted;                                                                                                   \
  } dri_##CB##_##T;                                                                                                    \
  DRI_BLOCKS_DESTROY(CB, T)                                                                                            \
  DRI_INLINE_ void dri_##CB##_end_##T(void *block) {                                                                   \
    vsip_##CB##destroy_##T((vsip_##CB##_##T *)block);                                                                  \
  }                                                                                                                    \
  DRI_INLINE_ void dri_##CB##_put_##T(void *value) {                                                                   \
    dri_##CB##_##T *held = (dri_##CB##_##T *)value;                                                                    \
    vsip_scalar_##T *real = NULL, *imaginary = NULL;                                                                   \
    if (!held->is_admitted) return;                                                                                    \
    RELEASE;                                                                                                           \
    (void)imaginary;                                                                                                   \
    held->is_admitted = 0;                                                                                             \
    /* The program has bound the block to other memory: the next frame has a new block. */                             \
    if ((void *)real != held->real) held->block = NULL;                                                                \
  }                                                                                                                    \
  DRI_INLINE_ void dri_##CB##_free_##T(void *value) {                                                                  \
    dri_##CB##_put_##T(value);                                                                                         \
    free(value);                                                                                                       \
  }                                                                                                                    \
  DRI_INLINE_ vsip_##CB##_##T *dri_##CB##_of_##T(struct dri_buffer *buffer, const DRI_Viewshape *shape) {              \
    dri_##CB##_##T *held = (dri_##CB##_##T *)DRI_Buffer_attached(buffer, DRI_BLOCK_KEY(TYPE));                         \
    if (held == NULL) {                                                                                                \
      held = (dri_##CB##_##T *)calloc(1, sizeof *held);                                                                \
      if (held == NULL) return NULL;                                                                                   \
      if (DRI_Buffer_attach(buffer, DRI_BLOCK_KEY(TYPE), held, dri_##CB##_put_##T, dri_##CB##_free_##T) !=             \
          DRI_SUCCESS) {                                                                                               \
        free(held);                                                                                                    \
        return NULL;                                                                                                   \
      }                                                                                                                \
    }                                                                                                                  \
    if (held->block == NULL || held->real != shape->real || held->imaginary != shape->imaginary) {                     \
      vsip_##CB##_##T *made = BIND;                                                                                    \
      if (made == NULL) return NULL;                                                                                   \
      if (DRI_Buffer_lend(buffer, DRI_LOAN_OF_CHANNEL, made, dri_##CB##_end_##T) != DRI_SUCCESS) {                     \
        vsip_##CB##destroy_##T(made);                                                                                  \
        return NULL;                                                                                                   \
      }                                                                                                                \
      DRI_VIEWS_KEEP(CB, T, made);                                                                                     \
      held->block = made;                                                                                              \
      held->real = shape->real;                                                                                        \
      held->imaginary = shape->imaginary;                                                                              \
      held->is_admitted = 0;                                                                                           \
    }                                                                                                                  \
    if (!DRI_VIEWS_IS_ADMITTED(held) && vsip_##CB##admit_##T(held->block, VSIP_TRUE) != 0) return NULL;                \
    held->is_admitted = 1;                                                                                             \
    return held->block;                                                                                                \
  }                                                                                                                    \
  DRI_VIEWS_OF_SHAPE(V, 1, CB, T, TYPE,                                                                                \
                     vsip_##V##bind_##T(block, (vsip_offset)s.offset, (vsip_stride)s.stride[0],                        \
                                        (vsip_length)s.length[0]))                                                     \
  DRI_VIEWS_OF_SHAPE(M, 2, CB, T, TYPE,                                                                                \
                     vsip_##M##bind_##T(block, (vsip_offset)s.offset, (vsip_stride)s.stride[1],                        \
                                        (vsip_length)s.length[1], (vsip_stride)s.stride[0],                            \
                                        (vsip_length)s.length[0]))                                                     \
  DRI_VIEWS_OF_SHAPE(TT, 3, CB, T, TYPE,                                                                               \
                     vsip_##TT##bind_##T(block, (vsip_offset)s.offset, (vsip_stride)s.stride[2],                       \
                                         (vsip_length)s.length[2], (vsip_stride)s.stride[1],                           \
                                         (vsip_length)s.length[1], (vsip_stride)s.stride[0],                           \
                                         (vsip_length)s.length[0]))

#define DRI_VIEWS_OF_SHAPE(CS, DIMS, CB, T, TYPE, BIND)                                                                \
  DRI_VIEWS_DESTROY(CS, CB, T)                                                                                         \
  DRI_INLINE_ void dri_##CS##view_end_##T(void *view) {                                                                \
    (void)vsip_##CS##destroy_##T((vsip_##CS##view_##T *)view);                                                         \
  }                                                                                                                    \
  DRI_INLINE_ int dri_##CS##view_of_##T(struct dri_buffer *buffer, DRI_Viewshape s, vsip_##CS##view_##T **view) {      \
    vsip_##CB##_##T *block;                                                                                            \
    vsip_##CS##view_##T *made;                                                                                         \
    int code;                                                                                                          \
    if (view == NULL) return DRI_Error_report(DRI_ERR_ARGUMENT, "view is NULL");                                       \
    block = dri_##CB##_of_##T(buffer, &s);                                                                             \
    if (block == NULL) return DRI_Error_report(DRI_ERR_NO_MEMORY, "VSIPL made no block of the buffer");                \
    made = BIND;                                                                                                       \
    if (made == NULL) return DRI_Error_report(DRI_ERR_NO_MEMORY, "VSIPL made no view of the slice");                   \
    code = DRI_Buffer_lend(buffer, DRI_LOAN_TO_HOLDER, made, dri_##CS##view_end_##T);                                  \
    if (code != DRI_SUCCESS) {                                                                                         \
      dri_##CS##view_end_##T(made);                                                                                    \
      return code;                                                                                                     \
    }                                                                                                                  \
    DRI_VIEWS_KEEP(CS, T, made);                                                                                       \
    *view = made;                                                                                                      \
    return DRI_SUCCESS;                                                                                                \
  }                                                                                                                    \
  DRI_INLINE_ int dri_get_##CS##view_##T(struct dri_buffer *buffer, int slice, vsip_##CS##view_##T **view) {           \
    DRI_Viewshape s;                                                                                                   \
    const int code = DRI_Buffer_get_viewshape(buffer, TYPE, DIMS, slice, &s);                                          \
    return code == DRI_SUCCESS ? dri_##CS##view_of_##T(buffer, s, view) : code;                                        \
  }                                                                                                                    \
  DRI_INLINE_ int dri_multid_get_##CS##view_##T(struct dri_buffer *buffer, DRI_NUMBERS_OF_##DIMS,                      \
                                                vsip_##CS##view_##T **view) {                                          \
    int slices[DIMS];                                                                                                  \
    DRI_Viewshape s;                                                                                                   \
    int code;                                                                                                          \
    DRI_NUMBERS_TO_##DIMS(slices);                                                                                     \
    code = DRI_Buffer_multid_get_viewshape(buffer, TYPE, DIMS, slices, &s);                                            \
    return code == DRI_SUCCESS ? dri_##CS##view_of_##T(buffer, s, view) : code;                                        \
  }                                                                                                                    \
  DRI_INLINE_ vsip_##CS##view_##T *DRI_Buffer_get_##CS##view_##T(struct dri_buffer *buffer, int slice) {               \
    vsip_##CS##view_##T *view = NULL;                                                                                  \
    return dri_get_##CS##view_##T(buffer, slice, &view) == DRI_SUCCESS ? view : NULL;                                  \
  }                                                                                                                    \
  DRI_INLINE_ vsip_##CS##view_##T *DRI_Buffer_multid_get_##CS##view_##T(struct dri_buffer *buffer,                     \
                                                                        DRI_NUMBERS_OF_##DIMS) {                       \
    vsip_##CS##view_##T *view = NULL;                                                                                  \
    return dri_multid_get_##CS##view_##T(buffer, DRI_NUMBERS_##DIMS, &view) == DRI_SUCCESS ? view : NULL;              \
  }

#define DRI_VIEWS_OF_REAL(T, TYPE)                                                                                     \
  DRI_VIEWS_OF_BLOCK(v, m, t, block, T, TYPE,                                                                          \
                     vsip_blockbind_##T((vsip_scalar_##T *)shape->real, (vsip_length)shape->elements, VSIP_MEM_NONE),  \
                     real = vsip_blockrelease_##T(held->block, VSIP_TRUE))
#define DRI_VIEWS_OF_COMPLEX(T, TYPE)                                                                                  \
  DRI_VIEWS_OF_BLOCK(cv, cm, ct, cblock, T, TYPE,                                                                      \
                     vsip_cblockbind_##T((vsip_scalar_##T *)shape->real, (vsip_scalar_##T *)shape->imaginary,          \
                                         (vsip_length)shape->elements, VSIP_MEM_NONE),                                 \
                     vsip_cblockrelease_##T(held->block, VSIP_TRUE, &real, &imaginary))

DRI_VIEWS_OF_REAL(f, DRI_FLOAT)
DRI_VIEWS_OF_REAL(d, DRI_DOUBLE)
DRI_VIEWS_OF_COMPLEX(f, DRI_COMPLEX)
DRI_VIEWS_OF_COMPLEX(d, DRI_DOUBLE_COMPLEX)
/* Another VSIPL may lack some integer types, so only those of its profile are used. */
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
#undef DRI_VIEWS_KEEP
#undef DRI_VIEWS_DESTROY
#undef DRI_BLOCKS_DESTROY
#undef DRI_VIEWS_IS_ADMITTED

/* Makes a vector of the buffer's element type; `view` is the address of a pointer to it. */
DRI_INLINE_ int dri_get_anyview(struct dri_buffer *buffer, int slice, void *view) {
  DRI_Dataspec type;
  int code = DRI_Buffer_get_type(buffer, &type);
  if (code != DRI_SUCCESS) return code;
  if (view == NULL) return DRI_Error_report(DRI_ERR_ARGUMENT, "view is NULL");
  switch (type) {
#define DRI_VIEW_CASE(CS, T)                                    \
  {                                                             \
    vsip_##CS##view_##T *made = NULL;                           \
    code = dri_get_##CS##view_##T(buffer, slice, &made);        \
    if (code == DRI_SUCCESS) memcpy(view, &made, sizeof made);  \
    return code;                                                \
  }
    case DRI_FLOAT:
      DRI_VIEW_CASE(v, f)
    case DRI_DOUBLE:
      DRI_VIEW_CASE(v, d)
    case DRI_COMPLEX:
    case DRI_COMPLEX_SPLIT:
      DRI_VIEW_CASE(cv, f)
    case DRI_DOUBLE_COMPLEX:
    case DRI_DOUBLE_COMPLEX_SPLIT:
      DRI_VIEW_CASE(cv, d)
#ifndef DRI_VIEWS_OF_FLOATS_ONLY
    case DRI_INTEGER:
      DRI_VIEW_CASE(v, i)
    case DRI_SHORT:
      DRI_VIEW_CASE(v, si)
#ifdef TRANSHIP_VSIP_H
    case DRI_UNSIGNED_SHORT:
      DRI_VIEW_CASE(v, us)
    case DRI_LONG:
      DRI_VIEW_CASE(v, li)
    case DRI_UNSIGNED_LONG:
      DRI_VIEW_CASE(v, ul)
#endif
#endif
#undef DRI_VIEW_CASE
    default:
      return DRI_Error_report(DRI_ERR_UNSUPPORTED, "this VSIPL has no views of the buffer's element type");
  }
}

/* The forms with an OUT parameter: the type of `view` chooses the function. */
#ifdef DRI_VIEWS_OF_FLOATS_ONLY
#define DRI_VIEWS_INTEGERS(X, A)
#elif defined(TRANSHIP_VSIP_H)
#define DRI_VIEWS_INTEGERS(X, A) X(A, i) X(A, si) X(A, us) X(A, li) X(A, ul)
#else
#define DRI_VIEWS_INTEGERS(X, A) X(A, i) X(A, si)
#endif
#define DRI_VIEWS_FLOATS(X, A) X(A, f) X(A, d)
#ifdef __cplusplus
inline int DRI_Buffer_get_view(struct dri_buffer *buffer, int slice, void **view) {
  return dri_get_anyview(buffer, slice, view);
}
inline int DRI_Buffer_get_dvview(struct dri_buffer *buffer, int slice, void **view) {
  return dri_get_anyview(buffer, slice, view);
}
#define DRI_VIEWS_OUT(CS, DIMS, T)                                                                               \
  inline int DRI_Buffer_get_##CS##view(struct dri_buffer *buffer, int slice, vsip_##CS##view_##T **view) {       \
    return dri_get_##CS##view_##T(buffer, slice, view);                                                          \
  }                                                                                                              \
  inline int DRI_Buffer_get_view(struct dri_buffer *buffer, int slice, vsip_##CS##view_##T **view) {             \
    return dri_get_##CS##view_##T(buffer, slice, view);                                                          \
  }                                                                                                              \
  inline int DRI_Buffer_multid_get_##CS##view(struct dri_buffer *buffer, DRI_NUMBERS_OF_##DIMS,                  \
                                              vsip_##CS##view_##T **view) {                                      \
    return dri_multid_get_##CS##view_##T(buffer, DRI_NUMBERS_##DIMS, view);                                      \
  }
#define DRI_VIEWS_OUT_D(CS, T)                                                                            \
  inline int DRI_Buffer_get_dvview(struct dri_buffer *buffer, int slice, vsip_##CS##view_##T **view) {    \
    return dri_get_##CS##view_##T(buffer, slice, view);                                                   \
  }
#define DRI_VIEWS_OUT_REAL(A, T) \
  DRI_VIEWS_OUT(v, 1, T) DRI_VIEWS_OUT(m, 2, T) DRI_VIEWS_OUT(t, 3, T) DRI_VIEWS_OUT_D(v, T)
#define DRI_VIEWS_OUT_COMPLEX(A, T) \
  DRI_VIEWS_OUT(cv, 1, T) DRI_VIEWS_OUT(cm, 2, T) DRI_VIEWS_OUT(ct, 3, T) DRI_VIEWS_OUT_D(cv, T)
DRI_VIEWS_FLOATS(DRI_VIEWS_OUT_REAL, all)
DRI_VIEWS_INTEGERS(DRI_VIEWS_OUT_REAL, all)
DRI_VIEWS_FLOATS(DRI_VIEWS_OUT_COMPLEX, all)
#undef DRI_VIEWS_OUT_COMPLEX
#undef DRI_VIEWS_OUT_REAL
#undef DRI_VIEWS_OUT_D
#undef DRI_VIEWS_OUT
#undef DRI_VIEWS_FLOATS
#undef DRI_VIEWS_INTEGERS
}
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define DRI_VIEW_GET(CS, T) , vsip_##CS##view_##T **: dri_get_##CS##view_##T
#define DRI_VIEW_MULTID(CS, T) , vsip_##CS##view_##T **: dri_multid_get_##CS##view_##T
#define DRI_VIEW_BY(X, CS, view) _Generic((view)DRI_VIEWS_FLOATS(X, CS) DRI_VIEWS_INTEGERS(X, CS))
#define DRI_CVIEW_BY(X, CS, view) _Generic((view)DRI_VIEWS_FLOATS(X, CS))
#define DRI_VIEW_ANY , void **: dri_get_anyview, void *: dri_get_anyview
#define DRI_VIEW_REAL(CS) DRI_VIEWS_FLOATS(DRI_VIEW_GET, CS) DRI_VIEWS_INTEGERS(DRI_VIEW_GET, CS)
#define DRI_VIEW_COMPLEX(CS) DRI_VIEWS_FLOATS(DRI_VIEW_GET, CS)
#define DRI_Buffer_get_dvview(buffer, slice, view) \
  _Generic((view)DRI_VIEW_ANY DRI_VIEW_REAL(v) DRI_VIEW_COMPLEX(cv))(buffer, slice, view)
#define DRI_Buffer_get_view(buffer, slice, view)                                                          \
  _Generic((view)DRI_VIEW_ANY DRI_VIEW_REAL(v) DRI_VIEW_COMPLEX(cv) DRI_VIEW_REAL(m) DRI_VIEW_COMPLEX(cm) \
               DRI_VIEW_REAL(t) DRI_VIEW_COMPLEX(ct))(buffer, slice, view)
#define DRI_Buffer_get_vview(buffer, slice, view) DRI_VIEW_BY(DRI_VIEW_GET, v, view)(buffer, slice, view)
#define DRI_Buffer_get_mview(buffer, slice, view) DRI_VIEW_BY(DRI_VIEW_GET, m, view)(buffer, slice, view)
#define DRI_Buffer_get_tview(buffer, slice, view) DRI_VIEW_BY(DRI_VIEW_GET, t, view)(buffer, slice, view)
#define DRI_Buffer_get_cvview(buffer, slice, view) DRI_CVIEW_BY(DRI_VIEW_GET, cv, view)(buffer, slice, view)
#define DRI_Buffer_get_cmview(buffer, slice, view) DRI_CVIEW_BY(DRI_VIEW_GET, cm, view)(buffer, slice, view)
#define DRI_Buffer_get_ctview(buffer, slice, view) DRI_CVIEW_BY(DRI_VIEW_GET, ct, view)(buffer, slice, view)
#define DRI_Buffer_multid_get_vview(buffer, x, view) DRI_VIEW_BY(DRI_VIEW_MULTID, v, view)(buffer, x, view)
#define DRI_Buffer_multid_get_mview(buffer, x, y, view) DRI_VIEW_BY(DRI_VIEW_MULTID, m, view)(buffer, x, y, view)
#define DRI_Buffer_multid_get_tview(buffer, x, y, z, view) DRI_VIEW_BY(DRI_VIEW_MULTID, t, view)(buffer, x, y, z, view)
#define DRI_Buffer_multid_get_cvview(buffer, x, view) DRI_CVIEW_BY(DRI_VIEW_MULTID, cv, view)(buffer, x, view)
#define DRI_Buffer_multid_get_cmview(buffer, x, y, view) DRI_CVIEW_BY(DRI_VIEW_MULTID, cm, view)(buffer, x, y, view)
#define DRI_Buffer_multid_get_ctview(buffer, x, y, z, view) \
  DRI_CVIEW_BY(DRI_VIEW_MULTID, ct, view)(buffer, x, y, z, view)
#else
#define DRI_Buffer_get_dvview dri_get_anyview
#define DRI_Buffer_get_view dri_get_anyview
#define DRI_Buffer_get_vview dri_get_vview_f
#define DRI_Buffer_get_mview dri_get_mview_f
#define DRI_Buffer_get_tview dri_get_tview_f
#define DRI_Buffer_get_cvview dri_get_cvview_f
#define DRI_Buffer_get_cmview dri_get_cmview_f
#define DRI_Buffer_get_ctview dri_get_ctview_f
#define DRI_Buffer_multid_get_vview dri_multid_get_vview_f
#define DRI_Buffer_multid_get_mview dri_multid_get_mview_f
#define DRI_Buffer_multid_get_tview dri_multid_get_tview_f
#define DRI_Buffer_multid_get_cvview dri_multid_get_cvview_f
#define DRI_Buffer_multid_get_cmview dri_multid_get_cmview_f
#define DRI_Buffer_multid_get_ctview dri_multid_get_ctview_f
#endif

#undef DRI_NUMBERS_OF_1
#undef DRI_NUMBERS_OF_2
#undef DRI_NUMBERS_OF_3
#undef DRI_NUMBERS_TO_1
#undef DRI_NUMBERS_TO_2
#undef DRI_NUMBERS_TO_3
#undef DRI_NUMBERS_1
#undef DRI_NUMBERS_2
#undef DRI_NUMBERS_3

/* Another VSIPL does not ask before it destroys an object, so the program's destroy calls are redirected to these. */
#ifndef TRANSHIP_VSIP_H
#undef vsip_blockdestroy_f
#undef vsip_vdestroy_f
#undef vsip_mdestroy_f
#undef vsip_tdestroy_f
#undef vsip_valldestroy_f
#undef vsip_malldestroy_f
#undef vsip_talldestroy_f
#undef vsip_cblockdestroy_f
#undef vsip_cvdestroy_f
#undef vsip_cmdestroy_f
#undef vsip_ctdestroy_f
#undef vsip_cvalldestroy_f
#undef vsip_cmalldestroy_f
#undef vsip_ctalldestroy_f
#undef vsip_blockdestroy_d
#undef vsip_vdestroy_d
#undef vsip_mdestroy_d
#undef vsip_tdestroy_d
#undef vsip_valldestroy_d
#undef vsip_malldestroy_d
#undef vsip_talldestroy_d
#undef vsip_cblockdestroy_d
#undef vsip_cvdestroy_d
#undef vsip_cmdestroy_d
#undef vsip_ctdestroy_d
#undef vsip_cvalldestroy_d
#undef vsip_cmalldestroy_d
#undef vsip_ctalldestroy_d
#define vsip_blockdestroy_f dri_blockdestroy_f
#define vsip_vdestroy_f dri_vdestroy_f
#define vsip_mdestroy_f dri_mdestroy_f
#define vsip_tdestroy_f dri_tdestroy_f
#define vsip_valldestroy_f dri_valldestroy_f
#define vsip_malldestroy_f dri_malldestroy_f
#define vsip_talldestroy_f dri_talldestroy_f
#define vsip_cblockdestroy_f dri_cblockdestroy_f
#define vsip_cvdestroy_f dri_cvdestroy_f
#define vsip_cmdestroy_f dri_cmdestroy_f
#define vsip_ctdestroy_f dri_ctdestroy_f
#define vsip_cvalldestroy_f dri_cvalldestroy_f
#define vsip_cmalldestroy_f dri_cmalldestroy_f
#define vsip_ctalldestroy_f dri_ctalldestroy_f
#define vsip_blockdestroy_d dri_blockdestroy_d
#define vsip_vdestroy_d dri_vdestroy_d
#define vsip_mdestroy_d dri_mdestroy_d
#define vsip_tdestroy_d dri_tdestroy_d
#define vsip_valldestroy_d dri_valldestroy_d
#define vsip_malldestroy_d dri_malldestroy_d
#define vsip_talldestroy_d dri_talldestroy_d
#define vsip_cblockdestroy_d dri_cblockdestroy_d
#define vsip_cvdestroy_d dri_cvdestroy_d
#define vsip_cmdestroy_d dri_cmdestroy_d
#define vsip_ctdestroy_d dri_ctdestroy_d
#define vsip_cvalldestroy_d dri_cvalldestroy_d
#define vsip_cmalldestroy_d dri_cmalldestroy_d
#define vsip_ctalldestroy_d dri_ctalldestroy_d
#ifndef DRI_VIEWS_OF_FLOATS_ONLY
#undef vsip_blockdestroy_i
#undef vsip_vdestroy_i
#undef vsip_mdestroy_i
#undef vsip_tdestroy_i
#undef vsip_valldestroy_i
#undef vsip_malldestroy_i
#undef vsip_talldestroy_i
#undef vsip_blockdestroy_si
#undef vsip_vdestroy_si
#undef vsip_mdestroy_si
#undef vsip_tdestroy_si
#undef vsip_valldestroy_si
#undef vsip_malldestroy_si
#undef vsip_talldestroy_si
#define vsip_blockdestroy_i dri_blockdestroy_i
#define vsip_vdestroy_i dri_vdestroy_i
#define vsip_mdestroy_i dri_mdestroy_i
#define vsip_tdestroy_i dri_tdestroy_i
#define vsip_valldestroy_i dri_valldestroy_i
#define vsip_malldestroy_i dri_malldestroy_i
#define vsip_talldestroy_i dri_talldestroy_i
#define vsip_blockdestroy_si dri_blockdestroy_si
#define vsip_vdestroy_si dri_vdestroy_si
#define vsip_mdestroy_si dri_mdestroy_si
#define vsip_tdestroy_si dri_tdestroy_si
#define vsip_valldestroy_si dri_valldestroy_si
#define vsip_malldestroy_si dri_malldestroy_si
#define vsip_talldestroy_si dri_talldestroy_si
#endif
#endif

#endif
