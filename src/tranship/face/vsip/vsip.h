/*
 * The part of the VSIPL 1.x C interface that signal-processing pipelines use: blocks and views of vectors, matrices and
 * tensors, copies, elementwise functions, products, FFTs and windows. docs/vsip.md lists what is offered and what is
 * not.
 *
 * Names. A suffix is the element type (f float, d double, i int, si short, us unsigned short, li long, ul unsigned
 * long, uc unsigned char, bl Boolean, vi vector index, mi matrix index, ti tensor index). The letters before the name
 * are the shape (v vector, m matrix, t tensor), preceded by c for complex elements: vsip_cmget_f reads an element of a
 * complex matrix of float.
 *
 * Units. Offsets, strides and lengths count elements; a complex number is one element. Element (i, j) of a matrix lies
 * at offset + i * col_stride + j * row_stride of its block: the column stride leads from a row to the next one.
 *
 * Storage. A block that this library creates for complex elements is interleaved. A user block is interleaved or split,
 * as it was bound. Functions accept both in any combination, strides of any sign, and inputs with zero strides.
 *
 * Errors. A function that creates an object returns NULL when it cannot. Destroying NULL does nothing. Other wrong
 * arguments are undefined with the library `tranship::vsip`; the library `tranship::vsip_checked` finds them, names the
 * call and both numbers, and aborts or calls a handler (tranship_vsip_set_handler).
 *
 * In place. Where the element type allows it, an output may be one of the inputs: the same first element and the same
 * strides. Outputs that overlap inputs in another way are undefined.
 *
 * Threads. Different threads may use different objects at the same time. Functions that read a view do not change it.
 */
#ifndef TRANSHIP_VSIP_H
#define TRANSHIP_VSIP_H

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* C89 has neither `inline` nor acosf. Compilers that are compatible with GCC have both under other names. */
#if defined(__GNUC__) && !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
#define TRANSHIP_VSIP_INLINE static __inline__
#define TRANSHIP_VSIP_MATH_f(NAME) __builtin_##NAME##f
#define TRANSHIP_VSIP_MATH_d(NAME) __builtin_##NAME
#else
#define TRANSHIP_VSIP_INLINE static inline
#define TRANSHIP_VSIP_MATH_f(NAME) NAME##f
#define TRANSHIP_VSIP_MATH_d(NAME) NAME
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Scalars ---------------------------------------------------------------------------------------------------- */

typedef float vsip_scalar_f;
typedef double vsip_scalar_d;
typedef int vsip_scalar_i;
typedef short vsip_scalar_si;
typedef unsigned short vsip_scalar_us;
typedef long vsip_scalar_li;
typedef unsigned long vsip_scalar_ul;
typedef unsigned char vsip_scalar_uc;
typedef int vsip_scalar_bl;
typedef vsip_scalar_bl vsip_bool;
typedef size_t vsip_scalar_vi;

typedef vsip_scalar_vi vsip_index;
typedef vsip_scalar_vi vsip_length;
typedef vsip_scalar_vi vsip_offset;
typedef ptrdiff_t vsip_stride;

typedef struct {
  vsip_scalar_vi r, c;
} vsip_scalar_mi;
typedef struct {
  vsip_scalar_vi z, y, x;
} vsip_scalar_ti;
typedef struct {
  vsip_scalar_f r, i;
} vsip_cscalar_f;
typedef struct {
  vsip_scalar_d r, i;
} vsip_cscalar_d;

#define VSIP_FALSE 0
#define VSIP_TRUE 1
#define VSIP_PI 3.14159265358979323846
#define VSIP_MAX_SCALAR_F FLT_MAX
#define VSIP_MAX_SCALAR_D DBL_MAX
#define VSIP_MAX_SCALAR_I INT_MAX
#define VSIP_MAX_SCALAR_SI SHRT_MAX
#define VSIP_MAX_SCALAR_US USHRT_MAX
#define VSIP_MAX_SCALAR_LI LONG_MAX
#define VSIP_MAX_SCALAR_UL ULONG_MAX
#define VSIP_MAX_SCALAR_UC UCHAR_MAX
#define VSIP_MAX_SCALAR_BL INT_MAX
#define VSIP_MAX_SCALAR_VI SIZE_MAX
#define VSIP_MIN_SCALAR_F FLT_MIN
#define VSIP_MIN_SCALAR_D DBL_MIN
#define VSIP_MIN_SCALAR_I INT_MIN
#define VSIP_MIN_SCALAR_SI SHRT_MIN
#define VSIP_MIN_SCALAR_LI LONG_MIN

/* ---- Options ---------------------------------------------------------------------------------------------------- */

/* In C++ as in C, an enumeration may hold any number; the checked library reports an invalid one. */
#ifdef __cplusplus
#define TRANSHIP_VSIP_INT : int
#else
#define TRANSHIP_VSIP_INT
#endif
typedef enum TRANSHIP_VSIP_INT {
  VSIP_MEM_NONE = 0,
  VSIP_MEM_RDONLY = 1,
  VSIP_MEM_CONST = 2,
  VSIP_MEM_SHARED = 3,
  VSIP_MEM_SHARED_RDONLY = 4,
  VSIP_MEM_SHARED_CONST = 5
} vsip_memory_hint; /* accepted and ignored */
typedef enum TRANSHIP_VSIP_INT { VSIP_CMPLX_INTERLEAVED = 0, VSIP_CMPLX_SPLIT = 1, VSIP_CMPLX_NONE = 2 } vsip_cmplx_mem;
typedef enum TRANSHIP_VSIP_INT { VSIP_ROW = 0, VSIP_COL = 1 } vsip_major;
typedef enum TRANSHIP_VSIP_INT { VSIP_TRAILING = 0, VSIP_LEADING = 1 } vsip_tmajor;
typedef enum TRANSHIP_VSIP_INT { VSIP_TMYX = 0, VSIP_TMZX = 1, VSIP_TMZY = 2 } vsip_tmslice;
typedef enum TRANSHIP_VSIP_INT { VSIP_TVX = 0, VSIP_TVY = 1, VSIP_TVZ = 2 } vsip_tvslice;
typedef enum TRANSHIP_VSIP_INT {
  VSIP_TTRANS_NOP = 0,
  VSIP_TTRANS_YX = 1,
  VSIP_TTRANS_ZY = 2,
  VSIP_TTRANS_ZX = 3,
  VSIP_TTRANS_YXZY = 4, /* y and x change places, then z and y */
  VSIP_TTRANS_YXZX = 5  /* y and x change places, then z and x */
} vsip_ttrans;
typedef enum TRANSHIP_VSIP_INT { VSIP_FFT_FWD = -1, VSIP_FFT_INV = +1 } vsip_fft_dir;
typedef enum TRANSHIP_VSIP_INT { VSIP_FFT_IP = 0, VSIP_FFT_OP = 1 } vsip_fft_place;
typedef enum TRANSHIP_VSIP_INT { VSIP_ALG_SPACE = 0, VSIP_ALG_TIME = 1, VSIP_ALG_NOISE = 2 } vsip_alg_hint;

/* Begins and ends the use of the library; calls may be nested. Both return 0 on success, and `options` is ignored.
 * vsip_finalize returns 1 without a vsip_init before it. */
int vsip_init(void* options);
int vsip_finalize(void* options);
/* How this library stores the complex blocks that it creates: VSIP_CMPLX_INTERLEAVED. */
vsip_cmplx_mem vsip_cstorage(void);

/* ---- Tables ----------------------------------------------------------------------------------------------------- */
/* The macros below declare each family of functions once and repeat it for the element types of a list. X takes the
 * suffix and, before it, the beginning of the names: vsip_ or, for complex elements, vsip_c. In the lists of C++
 * sources it takes the letter alone (nothing, or c), which C89 does not allow. */

#define TRANSHIP_VSIP_FLOATS(X) X(f) X(d)
#define TRANSHIP_VSIP_INTEGERS(X) X(i) X(si) X(us) X(li) X(ul) X(uc)

#define TRANSHIP_VSIP_BLOCKS(X) \
  X(f, f) X(d, d) X(i, i) X(si, si) X(us, us) X(li, li) X(ul, ul) X(uc, uc) X(bl, bl) X(vi, vi) X(mi, vi) X(ti, vi)

#define TRANSHIP_VSIP_EACH_NUMBER(R, C, X) \
  R(X, f) R(X, d) R(X, i) R(X, si) R(X, us) R(X, li) R(X, ul) R(X, uc) R(X, bl) C(X, f) C(X, d)
#define TRANSHIP_VSIP_EACH_TYPE(R, C, X) TRANSHIP_VSIP_EACH_NUMBER(R, C, X) R(X, vi) R(X, mi) R(X, ti)
#define TRANSHIP_VSIP_REAL_NAME(X, T) X(vsip_, T)
#define TRANSHIP_VSIP_COMPLEX_NAME(X, T) X(vsip_c, T)
#define TRANSHIP_VSIP_VECTOR_NAMES(X) TRANSHIP_VSIP_EACH_TYPE(TRANSHIP_VSIP_REAL_NAME, TRANSHIP_VSIP_COMPLEX_NAME, X)
#define TRANSHIP_VSIP_MATRIX_NAMES(X) TRANSHIP_VSIP_EACH_NUMBER(TRANSHIP_VSIP_REAL_NAME, TRANSHIP_VSIP_COMPLEX_NAME, X)
#define TRANSHIP_VSIP_TENSOR_NAMES(X) TRANSHIP_VSIP_MATRIX_NAMES(X)
#ifdef __cplusplus
#define TRANSHIP_VSIP_REAL_LETTER(X, T) X(, T)
#define TRANSHIP_VSIP_COMPLEX_LETTER(X, T) X(c, T)
#define TRANSHIP_VSIP_VECTORS(X) TRANSHIP_VSIP_EACH_TYPE(TRANSHIP_VSIP_REAL_LETTER, TRANSHIP_VSIP_COMPLEX_LETTER, X)
#define TRANSHIP_VSIP_MATRICES(X) TRANSHIP_VSIP_EACH_NUMBER(TRANSHIP_VSIP_REAL_LETTER, TRANSHIP_VSIP_COMPLEX_LETTER, X)
#define TRANSHIP_VSIP_TENSORS(X) TRANSHIP_VSIP_MATRICES(X)
#endif

/* ---- Blocks ----------------------------------------------------------------------------------------------------- */
/* A block is memory for `length` elements. blockcreate makes one that the library owns. blockbind makes a *user block*
 * of memory of the caller, who keeps it until the block is destroyed; the user array of a block of matrix indices
 * holds pairs (row, column) of vsip_scalar_vi, and that of a block of tensor indices holds triples (z, y, x).
 *
 * A user block is *released* at first: the memory is the caller's to use, and views of it may be made but not used.
 * blockadmit gives the memory to the library and returns 0; it returns a value other than 0 for a block without memory
 * and for one that is no user block. blockrelease gives it back and returns its address, or NULL if the block is no
 * user block. blockfind returns the address of a released user block and NULL of any other. blockrebind exchanges the
 * memory of a released user block and returns the address of the previous memory; for any other block it does nothing
 * and returns NULL. The memory is used where it is, so `update` changes nothing.
 *
 * blockdestroy destroys a block, but not views of it. A derived block (see vsip_vrealview_f) is not destroyed by it. */

#define TRANSHIP_VSIP_DECLARE(T, U)                                                                      \
  typedef struct vsip_block_##T vsip_block_##T;                                                          \
  vsip_block_##T* vsip_blockcreate_##T(vsip_length length, vsip_memory_hint hint);                       \
  vsip_block_##T* vsip_blockbind_##T(vsip_scalar_##U* array, vsip_length length, vsip_memory_hint hint); \
  int vsip_blockadmit_##T(vsip_block_##T* block, vsip_scalar_bl update);                                 \
  vsip_scalar_##U* vsip_blockrelease_##T(vsip_block_##T* block, vsip_scalar_bl update);                  \
  vsip_scalar_##U* vsip_blockrebind_##T(vsip_block_##T* block, vsip_scalar_##U* array);                  \
  vsip_scalar_##U* vsip_blockfind_##T(const vsip_block_##T* block);                                      \
  void vsip_blockdestroy_##T(vsip_block_##T* block);
TRANSHIP_VSIP_BLOCKS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

/* Complex blocks. cblockbind takes either two arrays of real and imaginary parts, or, with `imaginary` NULL, one array
 * of interleaved parts. The calls that return addresses set *real and *imaginary in the same way, both to NULL where
 * the calls above return NULL. cblockrebind may change from one form to the other. */

#define TRANSHIP_VSIP_DECLARE(T)                                                                                \
  typedef struct vsip_cblock_##T vsip_cblock_##T;                                                               \
  vsip_cblock_##T* vsip_cblockcreate_##T(vsip_length length, vsip_memory_hint hint);                            \
  vsip_cblock_##T* vsip_cblockbind_##T(vsip_scalar_##T* real, vsip_scalar_##T* imaginary, vsip_length length,   \
                                       vsip_memory_hint hint);                                                  \
  int vsip_cblockadmit_##T(vsip_cblock_##T* block, vsip_scalar_bl update);                                      \
  void vsip_cblockrelease_##T(vsip_cblock_##T* block, vsip_scalar_bl update, vsip_scalar_##T** real,            \
                              vsip_scalar_##T** imaginary);                                                     \
  void vsip_cblockrebind_##T(vsip_cblock_##T* block, vsip_scalar_##T* new_real, vsip_scalar_##T* new_imaginary, \
                             vsip_scalar_##T** real, vsip_scalar_##T** imaginary);                              \
  void vsip_cblockfind_##T(const vsip_cblock_##T* block, vsip_scalar_##T** real, vsip_scalar_##T** imaginary);  \
  void vsip_cblockdestroy_##T(vsip_cblock_##T* block);
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

/* ---- Views ------------------------------------------------------------------------------------------------------ */
/* A view shows elements of one block. create makes a block with a view of all of it. bind, clone, sub and the other
 * views make a new view of the same block. destroy destroys the view and returns its block (NULL for NULL); alldestroy
 * destroys both. put... change the view, never its block, and return the view; putattrib ignores the member `block`. */

#define TRANSHIP_VSIP_DECLARE(P, T)                                                                                  \
  typedef struct P##vview_##T P##vview_##T;                                                                          \
  typedef struct {                                                                                                   \
    vsip_offset offset;                                                                                              \
    vsip_stride stride;                                                                                              \
    vsip_length length;                                                                                              \
    P##block_##T* block;                                                                                             \
  } P##vattr_##T;                                                                                                    \
  P##vview_##T* P##vcreate_##T(vsip_length length, vsip_memory_hint hint);                                           \
  P##vview_##T* P##vbind_##T(const P##block_##T* block, vsip_offset offset, vsip_stride stride, vsip_length length); \
  P##vview_##T* P##vcloneview_##T(const P##vview_##T* view);                                                         \
  P##vview_##T* P##vsubview_##T(const P##vview_##T* view, vsip_index first, vsip_length length);                     \
  P##block_##T* P##vdestroy_##T(P##vview_##T* view);                                                                 \
  void P##valldestroy_##T(P##vview_##T* view);                                                                       \
  P##scalar_##T P##vget_##T(const P##vview_##T* view, vsip_index i);                                                 \
  void P##vput_##T(const P##vview_##T* view, vsip_index i, P##scalar_##T value);                                     \
  void P##vgetattrib_##T(const P##vview_##T* view, P##vattr_##T* attributes);                                        \
  P##vview_##T* P##vputattrib_##T(P##vview_##T* view, const P##vattr_##T* attributes);                               \
  P##block_##T* P##vgetblock_##T(const P##vview_##T* view);                                                          \
  vsip_offset P##vgetoffset_##T(const P##vview_##T* view);                                                           \
  vsip_stride P##vgetstride_##T(const P##vview_##T* view);                                                           \
  vsip_length P##vgetlength_##T(const P##vview_##T* view);                                                           \
  P##vview_##T* P##vputoffset_##T(P##vview_##T* view, vsip_offset offset);                                           \
  P##vview_##T* P##vputstride_##T(P##vview_##T* view, vsip_stride stride);                                           \
  P##vview_##T* P##vputlength_##T(P##vview_##T* view, vsip_length length);
TRANSHIP_VSIP_VECTOR_NAMES(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

/* Matrices. A column has col_length elements (the number of rows), col_stride apart; a row has row_length elements,
 * row_stride apart. create: `rows` by `columns`, with unit row stride (VSIP_ROW) or unit column stride (VSIP_COL).
 * diagview shows diagonal `index`: 0 is the main one, positive ones lie above it, negative ones below. */

#define TRANSHIP_VSIP_DECLARE(P, T)                                                                             \
  typedef struct P##mview_##T P##mview_##T;                                                                     \
  typedef struct {                                                                                              \
    vsip_offset offset;                                                                                         \
    vsip_stride row_stride;                                                                                     \
    vsip_length row_length;                                                                                     \
    vsip_stride col_stride;                                                                                     \
    vsip_length col_length;                                                                                     \
    P##block_##T* block;                                                                                        \
  } P##mattr_##T;                                                                                               \
  P##mview_##T* P##mcreate_##T(vsip_length rows, vsip_length columns, vsip_major major, vsip_memory_hint hint); \
  P##mview_##T* P##mbind_##T(const P##block_##T* block, vsip_offset offset, vsip_stride col_stride,             \
                             vsip_length col_length, vsip_stride row_stride, vsip_length row_length);           \
  P##mview_##T* P##mcloneview_##T(const P##mview_##T* view);                                                    \
  P##mview_##T* P##msubview_##T(const P##mview_##T* view, vsip_index row, vsip_index column, vsip_length rows,  \
                                vsip_length columns);                                                           \
  P##mview_##T* P##mtransview_##T(const P##mview_##T* view);                                                    \
  P##vview_##T* P##mrowview_##T(const P##mview_##T* view, vsip_index row);                                      \
  P##vview_##T* P##mcolview_##T(const P##mview_##T* view, vsip_index column);                                   \
  P##vview_##T* P##mdiagview_##T(const P##mview_##T* view, vsip_stride index);                                  \
  P##block_##T* P##mdestroy_##T(P##mview_##T* view);                                                            \
  void P##malldestroy_##T(P##mview_##T* view);                                                                  \
  P##scalar_##T P##mget_##T(const P##mview_##T* view, vsip_index row, vsip_index column);                       \
  void P##mput_##T(const P##mview_##T* view, vsip_index row, vsip_index column, P##scalar_##T value);           \
  void P##mgetattrib_##T(const P##mview_##T* view, P##mattr_##T* attributes);                                   \
  P##mview_##T* P##mputattrib_##T(P##mview_##T* view, const P##mattr_##T* attributes);                          \
  P##block_##T* P##mgetblock_##T(const P##mview_##T* view);                                                     \
  vsip_offset P##mgetoffset_##T(const P##mview_##T* view);                                                      \
  vsip_stride P##mgetrowstride_##T(const P##mview_##T* view);                                                   \
  vsip_length P##mgetrowlength_##T(const P##mview_##T* view);                                                   \
  vsip_stride P##mgetcolstride_##T(const P##mview_##T* view);                                                   \
  vsip_length P##mgetcollength_##T(const P##mview_##T* view);                                                   \
  P##mview_##T* P##mputoffset_##T(P##mview_##T* view, vsip_offset offset);                                      \
  P##mview_##T* P##mputrowstride_##T(P##mview_##T* view, vsip_stride stride);                                   \
  P##mview_##T* P##mputrowlength_##T(P##mview_##T* view, vsip_length length);                                   \
  P##mview_##T* P##mputcolstride_##T(P##mview_##T* view, vsip_stride stride);                                   \
  P##mview_##T* P##mputcollength_##T(P##mview_##T* view, vsip_length length);
TRANSHIP_VSIP_MATRIX_NAMES(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

/* Tensors. create: z by y by x, with unit x stride (VSIP_TRAILING) or unit z stride (VSIP_LEADING). matrixview fixes
 * the index that the slice does not name: VSIP_TMYX is the matrix of rows y and columns x at z = index. vectview runs
 * along the named dimension at the other two indices, in the order z, y, x. */

#define TRANSHIP_VSIP_DECLARE(P, T)                                                                                    \
  typedef struct P##tview_##T P##tview_##T;                                                                            \
  typedef struct {                                                                                                     \
    vsip_offset offset;                                                                                                \
    vsip_length z_length;                                                                                              \
    vsip_stride z_stride;                                                                                              \
    vsip_length y_length;                                                                                              \
    vsip_stride y_stride;                                                                                              \
    vsip_length x_length;                                                                                              \
    vsip_stride x_stride;                                                                                              \
    P##block_##T* block;                                                                                               \
  } P##tattr_##T;                                                                                                      \
  P##tview_##T* P##tcreate_##T(vsip_length z, vsip_length y, vsip_length x, vsip_tmajor major, vsip_memory_hint hint); \
  P##tview_##T* P##tbind_##T(const P##block_##T* block, vsip_offset offset, vsip_stride z_stride,                      \
                             vsip_length z_length, vsip_stride y_stride, vsip_length y_length, vsip_stride x_stride,   \
                             vsip_length x_length);                                                                    \
  P##tview_##T* P##tcloneview_##T(const P##tview_##T* view);                                                           \
  P##tview_##T* P##tsubview_##T(const P##tview_##T* view, vsip_index z, vsip_index y, vsip_index x,                    \
                                vsip_length z_length, vsip_length y_length, vsip_length x_length);                     \
  P##tview_##T* P##ttransview_##T(const P##tview_##T* view, vsip_ttrans transpose);                                    \
  P##mview_##T* P##tmatrixview_##T(const P##tview_##T* view, vsip_tmslice slice, vsip_index index);                    \
  P##vview_##T* P##tvectview_##T(const P##tview_##T* view, vsip_tvslice slice, vsip_index first, vsip_index second);   \
  P##block_##T* P##tdestroy_##T(P##tview_##T* view);                                                                   \
  void P##talldestroy_##T(P##tview_##T* view);                                                                         \
  P##scalar_##T P##tget_##T(const P##tview_##T* view, vsip_index z, vsip_index y, vsip_index x);                       \
  void P##tput_##T(const P##tview_##T* view, vsip_index z, vsip_index y, vsip_index x, P##scalar_##T value);           \
  void P##tgetattrib_##T(const P##tview_##T* view, P##tattr_##T* attributes);                                          \
  P##tview_##T* P##tputattrib_##T(P##tview_##T* view, const P##tattr_##T* attributes);                                 \
  P##block_##T* P##tgetblock_##T(const P##tview_##T* view);                                                            \
  vsip_offset P##tgetoffset_##T(const P##tview_##T* view);                                                             \
  vsip_stride P##tgetzstride_##T(const P##tview_##T* view);                                                            \
  vsip_length P##tgetzlength_##T(const P##tview_##T* view);                                                            \
  vsip_stride P##tgetystride_##T(const P##tview_##T* view);                                                            \
  vsip_length P##tgetylength_##T(const P##tview_##T* view);                                                            \
  vsip_stride P##tgetxstride_##T(const P##tview_##T* view);                                                            \
  vsip_length P##tgetxlength_##T(const P##tview_##T* view);                                                            \
  P##tview_##T* P##tputoffset_##T(P##tview_##T* view, vsip_offset offset);                                             \
  P##tview_##T* P##tputzstride_##T(P##tview_##T* view, vsip_stride stride);                                            \
  P##tview_##T* P##tputzlength_##T(P##tview_##T* view, vsip_length length);                                            \
  P##tview_##T* P##tputystride_##T(P##tview_##T* view, vsip_stride stride);                                            \
  P##tview_##T* P##tputylength_##T(P##tview_##T* view, vsip_length length);                                            \
  P##tview_##T* P##tputxstride_##T(P##tview_##T* view, vsip_stride stride);                                            \
  P##tview_##T* P##tputxlength_##T(P##tview_##T* view, vsip_length length);
TRANSHIP_VSIP_TENSOR_NAMES(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

/* Views of the real and of the imaginary parts of a complex view. They show a *derived block*, which belongs to the
 * complex block and dies with it. Their attributes are those of the complex view. */

#define TRANSHIP_VSIP_DECLARE(T)                                   \
  vsip_vview_##T* vsip_vrealview_##T(const vsip_cvview_##T* view); \
  vsip_vview_##T* vsip_vimagview_##T(const vsip_cvview_##T* view); \
  vsip_mview_##T* vsip_mrealview_##T(const vsip_cmview_##T* view); \
  vsip_mview_##T* vsip_mimagview_##T(const vsip_cmview_##T* view); \
  vsip_tview_##T* vsip_trealview_##T(const vsip_ctview_##T* view); \
  vsip_tview_##T* vsip_timagview_##T(const vsip_ctview_##T* view);
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

/* ---- Copies ----------------------------------------------------------------------------------------------------- */
/* vsip_vcopy_A_B(a, r) copies a vector of A to a vector of B of the same length, element by element, converting as C
 * does; to Boolean, every value but zero is true (1). Floating-point values that an integer type cannot hold are
 * undefined. copyto_user and copyfrom_user copy to and from dense arrays of the caller; for matrices these are in row
 * major (VSIP_ROW) or column major (VSIP_COL) order, and for complex views `imaginary` NULL means interleaved. */

#define TRANSHIP_VSIP_NUMBERS(X, A) X(A, f) X(A, d) X(A, i) X(A, si) X(A, us) X(A, li) X(A, ul) X(A, uc) X(A, bl)
#define TRANSHIP_VSIP_NUMBER_PAIRS(X)                                                                                 \
  TRANSHIP_VSIP_NUMBERS(X, f)                                                                                         \
  TRANSHIP_VSIP_NUMBERS(X, d)                                                                                         \
  TRANSHIP_VSIP_NUMBERS(X, i)                                                                                         \
  TRANSHIP_VSIP_NUMBERS(X, si) TRANSHIP_VSIP_NUMBERS(X, us) TRANSHIP_VSIP_NUMBERS(X, li) TRANSHIP_VSIP_NUMBERS(X, ul) \
      TRANSHIP_VSIP_NUMBERS(X, uc) TRANSHIP_VSIP_NUMBERS(X, bl)
#define TRANSHIP_VSIP_VECTOR_PAIRS(X) \
  TRANSHIP_VSIP_NUMBER_PAIRS(X)       \
  TRANSHIP_VSIP_NUMBERS(X, vi)        \
  X(f, vi) X(d, vi) X(i, vi) X(si, vi) X(us, vi) X(li, vi) X(ul, vi) X(uc, vi) X(bl, vi) X(vi, vi) X(mi, mi) X(ti, ti)
#define TRANSHIP_VSIP_FLOAT_PAIRS(X) X(f, f) X(f, d) X(d, f) X(d, d)

#define TRANSHIP_VSIP_DECLARE(A, B) void vsip_vcopy_##A##_##B(const vsip_vview_##A* a, const vsip_vview_##B* r);
TRANSHIP_VSIP_VECTOR_PAIRS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
#define TRANSHIP_VSIP_DECLARE(A, B) void vsip_mcopy_##A##_##B(const vsip_mview_##A* a, const vsip_mview_##B* r);
TRANSHIP_VSIP_NUMBER_PAIRS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
#define TRANSHIP_VSIP_DECLARE(A, B)                                               \
  void vsip_cvcopy_##A##_##B(const vsip_cvview_##A* a, const vsip_cvview_##B* r); \
  void vsip_cmcopy_##A##_##B(const vsip_cmview_##A* a, const vsip_cmview_##B* r);
TRANSHIP_VSIP_FLOAT_PAIRS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

#define TRANSHIP_VSIP_DECLARE(T)                                                                 \
  void vsip_vcopyto_user_##T(const vsip_vview_##T* a, vsip_scalar_##T* array);                   \
  void vsip_vcopyfrom_user_##T(const vsip_scalar_##T* array, const vsip_vview_##T* r);           \
  void vsip_mcopyto_user_##T(const vsip_mview_##T* a, vsip_major major, vsip_scalar_##T* array); \
  void vsip_mcopyfrom_user_##T(const vsip_scalar_##T* array, vsip_major major, const vsip_mview_##T* r);
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_DECLARE)
TRANSHIP_VSIP_INTEGERS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
void vsip_vcopyto_user_vi(const vsip_vview_vi* a, vsip_scalar_vi* array);
void vsip_vcopyfrom_user_vi(const vsip_scalar_vi* array, const vsip_vview_vi* r);
#define TRANSHIP_VSIP_DECLARE(T)                                                                                 \
  void vsip_cvcopyto_user_##T(const vsip_cvview_##T* a, vsip_scalar_##T* real, vsip_scalar_##T* imaginary);      \
  void vsip_cvcopyfrom_user_##T(const vsip_scalar_##T* real, const vsip_scalar_##T* imaginary,                   \
                                const vsip_cvview_##T* r);                                                       \
  void vsip_cmcopyto_user_##T(const vsip_cmview_##T* a, vsip_major major, vsip_scalar_##T* real,                 \
                              vsip_scalar_##T* imaginary);                                                       \
  void vsip_cmcopyfrom_user_##T(const vsip_scalar_##T* real, const vsip_scalar_##T* imaginary, vsip_major major, \
                                const vsip_cmview_##T* r);
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

/* ---- Elementwise functions -------------------------------------------------------------------------------------- */
/* Every table entry NAME is a function of vectors, vsip_vNAME, and one of matrices, vsip_mNAME (vsip_cvNAME and
 * vsip_cmNAME for complex elements). The output, r, is the last argument; all views have the same lengths. */

/* r = NAME(a). sq is a*a, recip 1/a, rsqrt 1/sqrt(a), mag the absolute value. */
#define TRANSHIP_VSIP_REAL_UNARY(X, T)                                                                         \
  X(acos, T)                                                                                                   \
  X(asin, T)                                                                                                   \
  X(atan, T)                                                                                                   \
  X(cos, T) X(cosh, T) X(exp, T) X(exp10, T) X(log, T) X(log10, T) X(mag, T) X(neg, T) X(recip, T) X(rsqrt, T) \
      X(sin, T) X(sinh, T) X(sq, T) X(sqrt, T) X(tan, T) X(tanh, T)
/* r = NAME(a, b). maxmg is max(|a|, |b|). */
#define TRANSHIP_VSIP_REAL_BINARY(X, T) \
  X(add, T) X(sub, T) X(mul, T) X(div, T) X(atan2, T) X(hypot, T) X(max, T) X(min, T) X(maxmg, T) X(minmg, T)
#define TRANSHIP_VSIP_COMPLEX_UNARY(X, T) X(conj, T) X(exp, T) X(log, T) X(neg, T) X(recip, T) X(sqrt, T)
/* jmul is a * conj(b). */
#define TRANSHIP_VSIP_COMPLEX_BINARY(X, T) X(add, T) X(sub, T) X(mul, T) X(jmul, T) X(div, T)
/* A scalar and a view: vsip_svNAME(s, a, r), vsip_smNAME; complex: csv, csm; a real scalar and a complex view: rscv,
 * rscm. The scalar is the left operand: svsub is s - a. */
#define TRANSHIP_VSIP_SCALAR_BINARY(X, T) X(add, T) X(sub, T) X(mul, T) X(div, T)
/* A real and a complex view: vsip_rcvNAME(a, b, r), vsip_rcmNAME. */
/* Integers. */
#define TRANSHIP_VSIP_INTEGER_BINARY(X, T) \
  X(add, T) X(sub, T) X(mul, T) X(and, T) X(or, T) X(xor, T) X(max, T) X(min, T)
#define TRANSHIP_VSIP_INTEGER_SCALAR(X, T) X(add, T) X(sub, T) X(mul, T)
#define TRANSHIP_VSIP_INTEGER_UNARY(X, T) X(neg, T) X(mag, T) X(not, T)
#define TRANSHIP_VSIP_LOGIC(X, T) X(and, T) X(or, T) X(xor, T)
/* Comparisons, to Boolean: vsip_vleq(a, b, r), vsip_mleq, and with a scalar on the left vsip_svleq(s, a, r). */
#define TRANSHIP_VSIP_COMPARISONS(X, T) X(leq, T) X(lne, T) X(lgt, T) X(lge, T) X(llt, T) X(lle, T)

/* To whole numbers, as floating-point numbers or as integers: vsip_vNAME_A_B(a, r), vsip_mNAME_A_B. round takes the
 * nearest one, and of two equally near ones the even one. */
#define TRANSHIP_VSIP_ROUNDINGS(X, A, B) X(floor, A, B) X(ceil, A, B) X(round, A, B)
#define TRANSHIP_VSIP_ROUNDED_PAIRS(X) X(f, f) X(f, i) X(f, li) X(d, d) X(d, i) X(d, li)

#define TRANSHIP_VSIP_UNARY(N, T)                                         \
  void vsip_v##N##_##T(const vsip_vview_##T* a, const vsip_vview_##T* r); \
  void vsip_m##N##_##T(const vsip_mview_##T* a, const vsip_mview_##T* r);
#define TRANSHIP_VSIP_BINARY(N, T)                                                                 \
  void vsip_v##N##_##T(const vsip_vview_##T* a, const vsip_vview_##T* b, const vsip_vview_##T* r); \
  void vsip_m##N##_##T(const vsip_mview_##T* a, const vsip_mview_##T* b, const vsip_mview_##T* r);
#define TRANSHIP_VSIP_SCALAR(N, T)                                                            \
  void vsip_sv##N##_##T(vsip_scalar_##T s, const vsip_vview_##T* a, const vsip_vview_##T* r); \
  void vsip_sm##N##_##T(vsip_scalar_##T s, const vsip_mview_##T* a, const vsip_mview_##T* r);
#define TRANSHIP_VSIP_COMPARE(N, T)                                                               \
  void vsip_v##N##_##T(const vsip_vview_##T* a, const vsip_vview_##T* b, const vsip_vview_bl* r); \
  void vsip_m##N##_##T(const vsip_mview_##T* a, const vsip_mview_##T* b, const vsip_mview_bl* r); \
  void vsip_sv##N##_##T(vsip_scalar_##T s, const vsip_vview_##T* a, const vsip_vview_bl* r);      \
  void vsip_sm##N##_##T(vsip_scalar_##T s, const vsip_mview_##T* a, const vsip_mview_bl* r);
#define TRANSHIP_VSIP_CUNARY(N, T)                                           \
  void vsip_cv##N##_##T(const vsip_cvview_##T* a, const vsip_cvview_##T* r); \
  void vsip_cm##N##_##T(const vsip_cmview_##T* a, const vsip_cmview_##T* r);
#define TRANSHIP_VSIP_CBINARY(N, T)                                                                    \
  void vsip_cv##N##_##T(const vsip_cvview_##T* a, const vsip_cvview_##T* b, const vsip_cvview_##T* r); \
  void vsip_cm##N##_##T(const vsip_cmview_##T* a, const vsip_cmview_##T* b, const vsip_cmview_##T* r);
#define TRANSHIP_VSIP_CSCALAR(N, T)                                                                    \
  void vsip_csv##N##_##T(vsip_cscalar_##T s, const vsip_cvview_##T* a, const vsip_cvview_##T* r);      \
  void vsip_csm##N##_##T(vsip_cscalar_##T s, const vsip_cmview_##T* a, const vsip_cmview_##T* r);      \
  void vsip_rscv##N##_##T(vsip_scalar_##T s, const vsip_cvview_##T* a, const vsip_cvview_##T* r);      \
  void vsip_rscm##N##_##T(vsip_scalar_##T s, const vsip_cmview_##T* a, const vsip_cmview_##T* r);      \
  void vsip_rcv##N##_##T(const vsip_vview_##T* a, const vsip_cvview_##T* b, const vsip_cvview_##T* r); \
  void vsip_rcm##N##_##T(const vsip_mview_##T* a, const vsip_cmview_##T* b, const vsip_cmview_##T* r);

#define TRANSHIP_VSIP_DECLARE(T)                         \
  TRANSHIP_VSIP_REAL_UNARY(TRANSHIP_VSIP_UNARY, T)       \
  TRANSHIP_VSIP_REAL_BINARY(TRANSHIP_VSIP_BINARY, T)     \
  TRANSHIP_VSIP_SCALAR_BINARY(TRANSHIP_VSIP_SCALAR, T)   \
  TRANSHIP_VSIP_COMPARISONS(TRANSHIP_VSIP_COMPARE, T)    \
  TRANSHIP_VSIP_COMPLEX_UNARY(TRANSHIP_VSIP_CUNARY, T)   \
  TRANSHIP_VSIP_COMPLEX_BINARY(TRANSHIP_VSIP_CBINARY, T) \
  TRANSHIP_VSIP_SCALAR_BINARY(TRANSHIP_VSIP_CSCALAR, T)
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
#define TRANSHIP_VSIP_DECLARE(T)                        \
  TRANSHIP_VSIP_INTEGER_UNARY(TRANSHIP_VSIP_UNARY, T)   \
  TRANSHIP_VSIP_INTEGER_BINARY(TRANSHIP_VSIP_BINARY, T) \
  TRANSHIP_VSIP_INTEGER_SCALAR(TRANSHIP_VSIP_SCALAR, T) \
  TRANSHIP_VSIP_COMPARISONS(TRANSHIP_VSIP_COMPARE, T)
TRANSHIP_VSIP_INTEGERS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
TRANSHIP_VSIP_LOGIC(TRANSHIP_VSIP_BINARY, bl)
TRANSHIP_VSIP_UNARY(not, bl)
#define TRANSHIP_VSIP_ROUND(N, A, B)                                            \
  void vsip_v##N##_##A##_##B(const vsip_vview_##A* a, const vsip_vview_##B* r); \
  void vsip_m##N##_##A##_##B(const vsip_mview_##A* a, const vsip_mview_##B* r);
#define TRANSHIP_VSIP_DECLARE(A, B) TRANSHIP_VSIP_ROUNDINGS(TRANSHIP_VSIP_ROUND, A, B)
TRANSHIP_VSIP_ROUNDED_PAIRS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
/* Comparisons of vectors of indices. */
void vsip_vadd_vi(const vsip_vview_vi* a, const vsip_vview_vi* b, const vsip_vview_vi* r);
void vsip_svadd_vi(vsip_scalar_vi s, const vsip_vview_vi* a, const vsip_vview_vi* r);
void vsip_svsub_vi(vsip_scalar_vi s, const vsip_vview_vi* a, const vsip_vview_vi* r);

/* A view and a scalar on the right: r = a / s. */
#define TRANSHIP_VSIP_DECLARE(T)                                                                                \
  void vsip_vsdiv_##T(const vsip_vview_##T* a, vsip_scalar_##T s, const vsip_vview_##T* r);                     \
  void vsip_msdiv_##T(const vsip_mview_##T* a, vsip_scalar_##T s, const vsip_mview_##T* r);                     \
  void vsip_cvrsdiv_##T(const vsip_cvview_##T* a, vsip_scalar_##T s, const vsip_cvview_##T* r);                 \
  void vsip_cmrsdiv_##T(const vsip_cmview_##T* a, vsip_scalar_##T s, const vsip_cmview_##T* r);                 \
  /* A complex and a real view: a - b, a / b. */                                                                \
  void vsip_crvsub_##T(const vsip_cvview_##T* a, const vsip_vview_##T* b, const vsip_cvview_##T* r);            \
  void vsip_crmsub_##T(const vsip_cmview_##T* a, const vsip_mview_##T* b, const vsip_cmview_##T* r);            \
  void vsip_crvdiv_##T(const vsip_cvview_##T* a, const vsip_vview_##T* b, const vsip_cvview_##T* r);            \
  void vsip_crmdiv_##T(const vsip_cmview_##T* a, const vsip_mview_##T* b, const vsip_cmview_##T* r);            \
  /* From complex to real: |a|, |a|^2, the argument, the parts. */                                              \
  void vsip_cvmag_##T(const vsip_cvview_##T* a, const vsip_vview_##T* r);                                       \
  void vsip_cmmag_##T(const vsip_cmview_##T* a, const vsip_mview_##T* r);                                       \
  void vsip_vcmagsq_##T(const vsip_cvview_##T* a, const vsip_vview_##T* r);                                     \
  void vsip_mcmagsq_##T(const vsip_cmview_##T* a, const vsip_mview_##T* r);                                     \
  void vsip_varg_##T(const vsip_cvview_##T* a, const vsip_vview_##T* r);                                        \
  void vsip_marg_##T(const vsip_cmview_##T* a, const vsip_mview_##T* r);                                        \
  void vsip_vreal_##T(const vsip_cvview_##T* a, const vsip_vview_##T* r);                                       \
  void vsip_mreal_##T(const vsip_cmview_##T* a, const vsip_mview_##T* r);                                       \
  void vsip_vimag_##T(const vsip_cvview_##T* a, const vsip_vview_##T* r);                                       \
  void vsip_mimag_##T(const vsip_cmview_##T* a, const vsip_mview_##T* r);                                       \
  void vsip_vcmaxmgsq_##T(const vsip_cvview_##T* a, const vsip_cvview_##T* b, const vsip_vview_##T* r);         \
  void vsip_mcmaxmgsq_##T(const vsip_cmview_##T* a, const vsip_cmview_##T* b, const vsip_mview_##T* r);         \
  void vsip_vcminmgsq_##T(const vsip_cvview_##T* a, const vsip_cvview_##T* b, const vsip_vview_##T* r);         \
  void vsip_mcminmgsq_##T(const vsip_cmview_##T* a, const vsip_cmview_##T* b, const vsip_mview_##T* r);         \
  /* From real to complex: a + ib, cos a + i sin a, a * (cos b + i sin b). */                                   \
  void vsip_vcmplx_##T(const vsip_vview_##T* a, const vsip_vview_##T* b, const vsip_cvview_##T* r);             \
  void vsip_mcmplx_##T(const vsip_mview_##T* a, const vsip_mview_##T* b, const vsip_cmview_##T* r);             \
  void vsip_veuler_##T(const vsip_vview_##T* a, const vsip_cvview_##T* r);                                      \
  void vsip_meuler_##T(const vsip_mview_##T* a, const vsip_cmview_##T* r);                                      \
  void vsip_vrect_##T(const vsip_vview_##T* magnitude, const vsip_vview_##T* angle, const vsip_cvview_##T* r);  \
  void vsip_mrect_##T(const vsip_mview_##T* magnitude, const vsip_mview_##T* angle, const vsip_cmview_##T* r);  \
  void vsip_vpolar_##T(const vsip_cvview_##T* a, const vsip_vview_##T* magnitude, const vsip_vview_##T* angle); \
  void vsip_mpolar_##T(const vsip_cmview_##T* a, const vsip_mview_##T* magnitude, const vsip_mview_##T* angle);
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

/* Three operands, vectors only: am (a+b)*c, ma a*b+c, msb a*b-c, sbm (a-b)*c; with scalars: sam (a+s)*c, sma a*s+c,
 * msa a*b+s, smsa a*s+t. */
#define TRANSHIP_VSIP_DECLARE(P, T)                                                                             \
  void P##vam_##T(const P##vview_##T* a, const P##vview_##T* b, const P##vview_##T* c, const P##vview_##T* r);  \
  void P##vma_##T(const P##vview_##T* a, const P##vview_##T* b, const P##vview_##T* c, const P##vview_##T* r);  \
  void P##vmsb_##T(const P##vview_##T* a, const P##vview_##T* b, const P##vview_##T* c, const P##vview_##T* r); \
  void P##vsbm_##T(const P##vview_##T* a, const P##vview_##T* b, const P##vview_##T* c, const P##vview_##T* r); \
  void P##vsam_##T(const P##vview_##T* a, P##scalar_##T s, const P##vview_##T* c, const P##vview_##T* r);       \
  void P##vsma_##T(const P##vview_##T* a, P##scalar_##T s, const P##vview_##T* c, const P##vview_##T* r);       \
  void P##vmsa_##T(const P##vview_##T* a, const P##vview_##T* b, P##scalar_##T s, const P##vview_##T* r);       \
  void P##vsmsa_##T(const P##vview_##T* a, P##scalar_##T s, P##scalar_##T t, const P##vview_##T* r);            \
  /* r = alpha * a + (1 - alpha) * r. */                                                                        \
  void P##vexpoavg_##T(vsip_scalar_##T alpha, const P##vview_##T* a, const P##vview_##T* r);                    \
  void P##mexpoavg_##T(vsip_scalar_##T alpha, const P##mview_##T* a, const P##mview_##T* r);                    \
  /* Elements of a and b change places. */                                                                      \
  void P##vswap_##T(const P##vview_##T* a, const P##vview_##T* b);                                              \
  void P##mswap_##T(const P##mview_##T* a, const P##mview_##T* b);                                              \
  /* The halves of the vector (of the rows and of the columns) change places: element n/2 of n comes first. */  \
  void P##vfreqswap_##T(const P##vview_##T* a);                                                                 \
  void P##mfreqswap_##T(const P##mview_##T* a);                                                                 \
  /* r[i] = a[index[i]]; r[index[i]] = a[i]. The length is that of `index`. */                                  \
  void P##vgather_##T(const P##vview_##T* a, const vsip_vview_vi* index, const P##vview_##T* r);                \
  void P##mgather_##T(const P##mview_##T* a, const vsip_vview_mi* index, const P##vview_##T* r);                \
  void P##vscatter_##T(const P##vview_##T* a, const P##vview_##T* r, const vsip_vview_vi* index);               \
  void P##mscatter_##T(const P##vview_##T* a, const P##mview_##T* r, const vsip_vview_mi* index);
TRANSHIP_VSIP_DECLARE(vsip_, f)
TRANSHIP_VSIP_DECLARE(vsip_, d)
TRANSHIP_VSIP_DECLARE(vsip_c, f)
TRANSHIP_VSIP_DECLARE(vsip_c, d)
#undef TRANSHIP_VSIP_DECLARE

/* The same functions for vectors of integers and of indices. */
#define TRANSHIP_VSIP_DECLARE(T)                                                                       \
  void vsip_vswap_##T(const vsip_vview_##T* a, const vsip_vview_##T* b);                               \
  void vsip_vgather_##T(const vsip_vview_##T* a, const vsip_vview_vi* index, const vsip_vview_##T* r); \
  void vsip_vscatter_##T(const vsip_vview_##T* a, const vsip_vview_##T* r, const vsip_vview_vi* index);
TRANSHIP_VSIP_INTEGERS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
void vsip_vgather_vi(const vsip_vview_vi* a, const vsip_vview_vi* index, const vsip_vview_vi* r);
void vsip_vgather_mi(const vsip_vview_mi* a, const vsip_vview_vi* index, const vsip_vview_mi* r);

/* r = s, for vectors and matrices. */
#define TRANSHIP_VSIP_DECLARE(P, T)                          \
  void P##vfill_##T(P##scalar_##T s, const P##vview_##T* r); \
  void P##mfill_##T(P##scalar_##T s, const P##mview_##T* r);
TRANSHIP_VSIP_MATRIX_NAMES(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
void vsip_vfill_vi(vsip_scalar_vi s, const vsip_vview_vi* r);

/* ramp: r[i] = first + i * step. clip: c1 where a <= t1, a between, c2 where a >= t2. invclip: c1 where t1 <= a < t2,
 * c2 where t2 <= a <= t3, a elsewhere. */
#define TRANSHIP_VSIP_DECLARE(T)                                                                                 \
  void vsip_vramp_##T(vsip_scalar_##T first, vsip_scalar_##T step, const vsip_vview_##T* r);                     \
  void vsip_vclip_##T(const vsip_vview_##T* a, vsip_scalar_##T t1, vsip_scalar_##T t2, vsip_scalar_##T c1,       \
                      vsip_scalar_##T c2, const vsip_vview_##T* r);                                              \
  void vsip_mclip_##T(const vsip_mview_##T* a, vsip_scalar_##T t1, vsip_scalar_##T t2, vsip_scalar_##T c1,       \
                      vsip_scalar_##T c2, const vsip_mview_##T* r);                                              \
  void vsip_vinvclip_##T(const vsip_vview_##T* a, vsip_scalar_##T t1, vsip_scalar_##T t2, vsip_scalar_##T t3,    \
                         vsip_scalar_##T c1, vsip_scalar_##T c2, const vsip_vview_##T* r);                       \
  void vsip_minvclip_##T(const vsip_mview_##T* a, vsip_scalar_##T t1, vsip_scalar_##T t2, vsip_scalar_##T t3,    \
                         vsip_scalar_##T c1, vsip_scalar_##T c2, const vsip_mview_##T* r);                       \
  /* The sum of all elements; the largest and the smallest, with the index of the first such one unless NULL. */ \
  vsip_scalar_##T vsip_vsumval_##T(const vsip_vview_##T* a);                                                     \
  vsip_scalar_##T vsip_msumval_##T(const vsip_mview_##T* a);                                                     \
  vsip_scalar_##T vsip_vmaxval_##T(const vsip_vview_##T* a, vsip_index* index);                                  \
  vsip_scalar_##T vsip_mmaxval_##T(const vsip_mview_##T* a, vsip_scalar_mi* index);                              \
  vsip_scalar_##T vsip_vminval_##T(const vsip_vview_##T* a, vsip_index* index);                                  \
  vsip_scalar_##T vsip_mminval_##T(const vsip_mview_##T* a, vsip_scalar_mi* index);
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_DECLARE)
TRANSHIP_VSIP_INTEGERS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
void vsip_vramp_vi(vsip_scalar_vi first, vsip_scalar_vi step, const vsip_vview_vi* r);
vsip_scalar_vi vsip_vmaxval_vi(const vsip_vview_vi* a, vsip_index* index);
vsip_scalar_vi vsip_vminval_vi(const vsip_vview_vi* a, vsip_index* index);

/* ---- Reductions ------------------------------------------------------------------------------------------------- */
/* Sums of float are accumulated in double. maxmgval: the largest magnitude; cmaxmgsqval: the largest squared one. */

#define TRANSHIP_VSIP_DECLARE(T)                                                          \
  vsip_scalar_##T vsip_vsumsqval_##T(const vsip_vview_##T* a);                            \
  vsip_scalar_##T vsip_msumsqval_##T(const vsip_mview_##T* a);                            \
  vsip_scalar_##T vsip_vmeanval_##T(const vsip_vview_##T* a);                             \
  vsip_scalar_##T vsip_mmeanval_##T(const vsip_mview_##T* a);                             \
  vsip_scalar_##T vsip_vmeansqval_##T(const vsip_vview_##T* a);                           \
  vsip_scalar_##T vsip_mmeansqval_##T(const vsip_mview_##T* a);                           \
  vsip_cscalar_##T vsip_cvsumval_##T(const vsip_cvview_##T* a);                           \
  vsip_cscalar_##T vsip_cmsumval_##T(const vsip_cmview_##T* a);                           \
  vsip_cscalar_##T vsip_cvmeanval_##T(const vsip_cvview_##T* a);                          \
  vsip_cscalar_##T vsip_cmmeanval_##T(const vsip_cmview_##T* a);                          \
  vsip_scalar_##T vsip_cvmeansqval_##T(const vsip_cvview_##T* a);                         \
  vsip_scalar_##T vsip_cmmeansqval_##T(const vsip_cmview_##T* a);                         \
  vsip_scalar_##T vsip_vmaxmgval_##T(const vsip_vview_##T* a, vsip_index* index);         \
  vsip_scalar_##T vsip_mmaxmgval_##T(const vsip_mview_##T* a, vsip_scalar_mi* index);     \
  vsip_scalar_##T vsip_vminmgval_##T(const vsip_vview_##T* a, vsip_index* index);         \
  vsip_scalar_##T vsip_mminmgval_##T(const vsip_mview_##T* a, vsip_scalar_mi* index);     \
  vsip_scalar_##T vsip_vcmaxmgsqval_##T(const vsip_cvview_##T* a, vsip_index* index);     \
  vsip_scalar_##T vsip_mcmaxmgsqval_##T(const vsip_cmview_##T* a, vsip_scalar_mi* index); \
  vsip_scalar_##T vsip_vcminmgsqval_##T(const vsip_cvview_##T* a, vsip_index* index);     \
  vsip_scalar_##T vsip_mcminmgsqval_##T(const vsip_cmview_##T* a, vsip_scalar_mi* index); \
  /* The sum of a[i] * b[i]; cvjdot: of a[i] * conj(b[i]). */                             \
  vsip_scalar_##T vsip_vdot_##T(const vsip_vview_##T* a, const vsip_vview_##T* b);        \
  vsip_cscalar_##T vsip_cvdot_##T(const vsip_cvview_##T* a, const vsip_cvview_##T* b);    \
  vsip_cscalar_##T vsip_cvjdot_##T(const vsip_cvview_##T* a, const vsip_cvview_##T* b);
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

vsip_scalar_bl vsip_valltrue_bl(const vsip_vview_bl* a);
vsip_scalar_bl vsip_malltrue_bl(const vsip_mview_bl* a);
vsip_scalar_bl vsip_vanytrue_bl(const vsip_vview_bl* a);
vsip_scalar_bl vsip_manytrue_bl(const vsip_mview_bl* a);
/* How many elements are true. */
vsip_scalar_vi vsip_vsumval_bl(const vsip_vview_bl* a);
vsip_scalar_vi vsip_msumval_bl(const vsip_mview_bl* a);
/* The indices of the true elements, in order (of a matrix: row by row, or column by column where the column stride is
 * the smaller one), into `r`, which is long enough for them and whose length becomes their number, unless there are
 * none. Returns their number. */
vsip_length vsip_vindexbool(const vsip_vview_bl* a, vsip_vview_vi* r);
vsip_length vsip_mindexbool(const vsip_mview_bl* a, vsip_vview_mi* r);

/* The first index i from `from` on for which holds(a[i], b[i]) is true; the length where there is none, and `from`
 * where it is not below the length. */
#define TRANSHIP_VSIP_DECLARE(T)                                                                    \
  vsip_index vsip_vfirst_##T(vsip_index from, vsip_bool (*holds)(vsip_scalar_##T, vsip_scalar_##T), \
                             const vsip_vview_##T* a, const vsip_vview_##T* b);
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_DECLARE)
TRANSHIP_VSIP_DECLARE(i)
TRANSHIP_VSIP_DECLARE(li)
TRANSHIP_VSIP_DECLARE(vi)
TRANSHIP_VSIP_DECLARE(mi)
#undef TRANSHIP_VSIP_DECLARE

/* ---- Matrices --------------------------------------------------------------------------------------------------- */
/* vmmul multiplies each row (VSIP_ROW) or column (VSIP_COL) of the matrix by the vector, element by element. mtrans is
 * the corner turn; in place, the matrix is square. cmherm conjugates as well. prod: r = a b; prodt: r = a b^T, prodj:
 * r = a conj(b), prodh: r = a conj(b)^T; r overlaps neither a nor b. vouter: r[i][j] = s * a[i] * b[j]; cvouter: of
 * conj(b[j]). prod3 and prod4: a has 3 by 3 or 4 by 4 elements, and r may be b. */

#define TRANSHIP_VSIP_SMALL_PRODUCTS(N, P, T)                                                  \
  void P##mprod##N##_##T(const P##mview_##T* a, const P##mview_##T* b, const P##mview_##T* r); \
  void P##mvprod##N##_##T(const P##mview_##T* a, const P##vview_##T* b, const P##vview_##T* r);
#define TRANSHIP_VSIP_DECLARE(P, T)                                                                         \
  void P##vmmul_##T(const P##vview_##T* a, const P##mview_##T* b, vsip_major major, const P##mview_##T* r); \
  void P##mtrans_##T(const P##mview_##T* a, const P##mview_##T* r);                                         \
  void P##mprod_##T(const P##mview_##T* a, const P##mview_##T* b, const P##mview_##T* r);                   \
  void P##mprodt_##T(const P##mview_##T* a, const P##mview_##T* b, const P##mview_##T* r);                  \
  void P##mvprod_##T(const P##mview_##T* a, const P##vview_##T* b, const P##vview_##T* r);                  \
  void P##vmprod_##T(const P##vview_##T* a, const P##mview_##T* b, const P##vview_##T* r);                  \
  void P##vouter_##T(P##scalar_##T s, const P##vview_##T* a, const P##vview_##T* b, const P##mview_##T* r); \
  TRANSHIP_VSIP_SMALL_PRODUCTS(3, P, T)                                                                     \
  TRANSHIP_VSIP_SMALL_PRODUCTS(4, P, T)
TRANSHIP_VSIP_DECLARE(vsip_, f)
TRANSHIP_VSIP_DECLARE(vsip_, d)
TRANSHIP_VSIP_DECLARE(vsip_c, f)
TRANSHIP_VSIP_DECLARE(vsip_c, d)
#undef TRANSHIP_VSIP_DECLARE
#define TRANSHIP_VSIP_DECLARE(T)                                                                       \
  void vsip_rvcmmul_##T(const vsip_vview_##T* a, const vsip_cmview_##T* b, vsip_major major,           \
                        const vsip_cmview_##T* r);                                                     \
  void vsip_cmherm_##T(const vsip_cmview_##T* a, const vsip_cmview_##T* r);                            \
  void vsip_cmprodh_##T(const vsip_cmview_##T* a, const vsip_cmview_##T* b, const vsip_cmview_##T* r); \
  void vsip_cmprodj_##T(const vsip_cmview_##T* a, const vsip_cmview_##T* b, const vsip_cmview_##T* r);
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

/* ---- FFTs ------------------------------------------------------------------------------------------------------- */
/* The kernel is exp(dir * 2 pi i j k / n), and the result is multiplied by `scale`: nothing else is normalised. create
 * returns NULL for a length of 0 and where memory is short. Any length is accepted; products of small primes are fast.
 * The names say complex to complex (cc), real to complex (rc), complex to real (cr), in place (ip), out of place (op).
 * rc transforms forward, n real numbers to n/2 + 1 complex ones; cr transforms back, n/2 + 1 complex numbers (of which
 * the others are conjugates) to n real ones. Inputs that are out of place keep their values.
 *
 * An fftm transforms every row (VSIP_ROW) or column (VSIP_COL) of a matrix of `rows` by `columns`; for rc and cr these
 * are the lengths of the real matrix. `ntimes` says how often the object will be used, 0 meaning very often; with
 * VSIP_ALG_TIME and 0, the first use of each memory layout measures alternatives. An object keeps a plan for each
 * layout (strides, alignment, storage) that it has met. One object serves one thread at a time. destroy returns 0. */

#define TRANSHIP_VSIP_DECLARE(T)                                                                                       \
  typedef struct vsip_fft_##T vsip_fft_##T;                                                                            \
  typedef struct vsip_fftm_##T vsip_fftm_##T;                                                                          \
  typedef struct {                                                                                                     \
    vsip_scalar_vi input;                                                                                              \
    vsip_scalar_vi output;                                                                                             \
    vsip_fft_place place;                                                                                              \
    vsip_scalar_##T scale;                                                                                             \
    vsip_fft_dir dir;                                                                                                  \
  } vsip_fft_attr_##T;                                                                                                 \
  typedef struct {                                                                                                     \
    vsip_scalar_mi input;                                                                                              \
    vsip_scalar_mi output;                                                                                             \
    vsip_fft_place place;                                                                                              \
    vsip_scalar_##T scale;                                                                                             \
    vsip_fft_dir dir;                                                                                                  \
    vsip_major major;                                                                                                  \
  } vsip_fftm_attr_##T;                                                                                                \
  vsip_fft_##T* vsip_ccfftip_create_##T(vsip_length n, vsip_scalar_##T scale, vsip_fft_dir dir, unsigned int ntimes,   \
                                        vsip_alg_hint hint);                                                           \
  vsip_fft_##T* vsip_ccfftop_create_##T(vsip_length n, vsip_scalar_##T scale, vsip_fft_dir dir, unsigned int ntimes,   \
                                        vsip_alg_hint hint);                                                           \
  vsip_fft_##T* vsip_rcfftop_create_##T(vsip_length n, vsip_scalar_##T scale, unsigned int ntimes,                     \
                                        vsip_alg_hint hint);                                                           \
  vsip_fft_##T* vsip_crfftop_create_##T(vsip_length n, vsip_scalar_##T scale, unsigned int ntimes,                     \
                                        vsip_alg_hint hint);                                                           \
  void vsip_ccfftip_##T(const vsip_fft_##T* fft, const vsip_cvview_##T* a);                                            \
  void vsip_ccfftop_##T(const vsip_fft_##T* fft, const vsip_cvview_##T* a, const vsip_cvview_##T* r);                  \
  void vsip_rcfftop_##T(const vsip_fft_##T* fft, const vsip_vview_##T* a, const vsip_cvview_##T* r);                   \
  void vsip_crfftop_##T(const vsip_fft_##T* fft, const vsip_cvview_##T* a, const vsip_vview_##T* r);                   \
  void vsip_fft_getattr_##T(const vsip_fft_##T* fft, vsip_fft_attr_##T* attributes);                                   \
  int vsip_fft_destroy_##T(vsip_fft_##T* fft);                                                                         \
  vsip_fftm_##T* vsip_ccfftmip_create_##T(vsip_length rows, vsip_length columns, vsip_scalar_##T scale,                \
                                          vsip_fft_dir dir, vsip_major major, unsigned int ntimes,                     \
                                          vsip_alg_hint hint);                                                         \
  vsip_fftm_##T* vsip_ccfftmop_create_##T(vsip_length rows, vsip_length columns, vsip_scalar_##T scale,                \
                                          vsip_fft_dir dir, vsip_major major, unsigned int ntimes,                     \
                                          vsip_alg_hint hint);                                                         \
  vsip_fftm_##T* vsip_rcfftmop_create_##T(vsip_length rows, vsip_length columns, vsip_scalar_##T scale,                \
                                          vsip_major major, unsigned int ntimes, vsip_alg_hint hint);                  \
  vsip_fftm_##T* vsip_crfftmop_create_##T(vsip_length rows, vsip_length columns, vsip_scalar_##T scale,                \
                                          vsip_major major, unsigned int ntimes, vsip_alg_hint hint);                  \
  void vsip_ccfftmip_##T(const vsip_fftm_##T* fft, const vsip_cmview_##T* a);                                          \
  void vsip_ccfftmop_##T(const vsip_fftm_##T* fft, const vsip_cmview_##T* a, const vsip_cmview_##T* r);                \
  void vsip_rcfftmop_##T(const vsip_fftm_##T* fft, const vsip_mview_##T* a, const vsip_cmview_##T* r);                 \
  void vsip_crfftmop_##T(const vsip_fftm_##T* fft, const vsip_cmview_##T* a, const vsip_mview_##T* r);                 \
  void vsip_fftm_getattr_##T(const vsip_fftm_##T* fft, vsip_fftm_attr_##T* attributes);                                \
  int vsip_fftm_destroy_##T(vsip_fftm_##T* fft);                                                                       \
  /* ---- Windows: new vectors of n elements, symmetric. cheby: `ripple` is the level of the side lobes below the main \
   * lobe, in decibels; kaiser: `beta` is the parameter of the window. hanning has no zeros at its ends:               \
   * (1 - cos(2 pi (i+1) / (n+1))) / 2. hamming, 0.54 - 0.46 cos(2 pi i / (n-1)), is an addition of tranship. */       \
  vsip_vview_##T* vsip_vcreate_blackman_##T(vsip_length n, vsip_memory_hint hint);                                     \
  vsip_vview_##T* vsip_vcreate_cheby_##T(vsip_length n, vsip_scalar_##T ripple, vsip_memory_hint hint);                \
  vsip_vview_##T* vsip_vcreate_hanning_##T(vsip_length n, vsip_memory_hint hint);                                      \
  vsip_vview_##T* vsip_vcreate_hamming_##T(vsip_length n, vsip_memory_hint hint);                                      \
  vsip_vview_##T* vsip_vcreate_kaiser_##T(vsip_length n, vsip_scalar_##T beta, vsip_memory_hint hint);
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

/* ---- Scalar functions ------------------------------------------------------------------------------------------- */
/* cjmul is a * conj(b), rcsub s - a, crsub a - s. polar and rect convert between a number and its magnitude and angle.
 */

#define TRANSHIP_VSIP_DECLARE(T)                                                                 \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_real_##T(vsip_cscalar_##T a) {                       \
    return a.r;                                                                                  \
  }                                                                                              \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_imag_##T(vsip_cscalar_##T a) {                       \
    return a.i;                                                                                  \
  }                                                                                              \
  TRANSHIP_VSIP_INLINE vsip_cscalar_##T vsip_cmplx_##T(vsip_scalar_##T r, vsip_scalar_##T i) {   \
    vsip_cscalar_##T c;                                                                          \
    c.r = r, c.i = i;                                                                            \
    return c;                                                                                    \
  }                                                                                              \
  TRANSHIP_VSIP_INLINE vsip_cscalar_##T vsip_cadd_##T(vsip_cscalar_##T a, vsip_cscalar_##T b) {  \
    return vsip_cmplx_##T(a.r + b.r, a.i + b.i);                                                 \
  }                                                                                              \
  TRANSHIP_VSIP_INLINE vsip_cscalar_##T vsip_csub_##T(vsip_cscalar_##T a, vsip_cscalar_##T b) {  \
    return vsip_cmplx_##T(a.r - b.r, a.i - b.i);                                                 \
  }                                                                                              \
  TRANSHIP_VSIP_INLINE vsip_cscalar_##T vsip_cmul_##T(vsip_cscalar_##T a, vsip_cscalar_##T b) {  \
    return vsip_cmplx_##T(a.r * b.r - a.i * b.i, a.r * b.i + a.i * b.r);                         \
  }                                                                                              \
  TRANSHIP_VSIP_INLINE vsip_cscalar_##T vsip_cjmul_##T(vsip_cscalar_##T a, vsip_cscalar_##T b) { \
    return vsip_cmplx_##T(a.r * b.r + a.i * b.i, a.i * b.r - a.r * b.i);                         \
  }                                                                                              \
  TRANSHIP_VSIP_INLINE vsip_cscalar_##T vsip_cneg_##T(vsip_cscalar_##T a) {                      \
    return vsip_cmplx_##T(-a.r, -a.i);                                                           \
  }                                                                                              \
  TRANSHIP_VSIP_INLINE vsip_cscalar_##T vsip_conj_##T(vsip_cscalar_##T a) {                      \
    return vsip_cmplx_##T(a.r, -a.i);                                                            \
  }                                                                                              \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_cmagsq_##T(vsip_cscalar_##T a) {                     \
    return a.r * a.r + a.i * a.i;                                                                \
  }                                                                                              \
  TRANSHIP_VSIP_INLINE vsip_cscalar_##T vsip_rcadd_##T(vsip_scalar_##T s, vsip_cscalar_##T a) {  \
    return vsip_cmplx_##T(s + a.r, a.i);                                                         \
  }                                                                                              \
  TRANSHIP_VSIP_INLINE vsip_cscalar_##T vsip_rcsub_##T(vsip_scalar_##T s, vsip_cscalar_##T a) {  \
    return vsip_cmplx_##T(s - a.r, -a.i);                                                        \
  }                                                                                              \
  TRANSHIP_VSIP_INLINE vsip_cscalar_##T vsip_crsub_##T(vsip_cscalar_##T a, vsip_scalar_##T s) {  \
    return vsip_cmplx_##T(a.r - s, a.i);                                                         \
  }                                                                                              \
  TRANSHIP_VSIP_INLINE vsip_cscalar_##T vsip_rcmul_##T(vsip_scalar_##T s, vsip_cscalar_##T a) {  \
    return vsip_cmplx_##T(s * a.r, s * a.i);                                                     \
  }                                                                                              \
  TRANSHIP_VSIP_INLINE vsip_cscalar_##T vsip_crdiv_##T(vsip_cscalar_##T a, vsip_scalar_##T s) {  \
    return vsip_cmplx_##T(a.r / s, a.i / s);                                                     \
  }                                                                                              \
  vsip_scalar_##T vsip_cmag_##T(vsip_cscalar_##T a);                                             \
  vsip_scalar_##T vsip_arg_##T(vsip_cscalar_##T a);                                              \
  vsip_cscalar_##T vsip_cdiv_##T(vsip_cscalar_##T a, vsip_cscalar_##T b);                        \
  vsip_cscalar_##T vsip_crecip_##T(vsip_cscalar_##T a);                                          \
  vsip_cscalar_##T vsip_cexp_##T(vsip_cscalar_##T a);                                            \
  vsip_cscalar_##T vsip_clog_##T(vsip_cscalar_##T a);                                            \
  vsip_cscalar_##T vsip_csqrt_##T(vsip_cscalar_##T a);                                           \
  void vsip_polar_##T(vsip_cscalar_##T a, vsip_scalar_##T* magnitude, vsip_scalar_##T* angle);   \
  vsip_cscalar_##T vsip_rect_##T(vsip_scalar_##T magnitude, vsip_scalar_##T angle);
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

/* In capitals: the same functions, with a pointer to the result as last argument. */
#define TRANSHIP_VSIP_TO_ONE(LARGE, SMALL, T, A)                           \
  TRANSHIP_VSIP_INLINE void vsip_##LARGE##_##T(A a, vsip_cscalar_##T* r) { \
    *r = vsip_##SMALL##_##T(a);                                            \
  }
#define TRANSHIP_VSIP_TO_TWO(LARGE, SMALL, T, A, B)                             \
  TRANSHIP_VSIP_INLINE void vsip_##LARGE##_##T(A a, B b, vsip_cscalar_##T* r) { \
    *r = vsip_##SMALL##_##T(a, b);                                              \
  }
#define TRANSHIP_VSIP_DECLARE(T)                                            \
  TRANSHIP_VSIP_TO_TWO(CMPLX, cmplx, T, vsip_scalar_##T, vsip_scalar_##T)   \
  TRANSHIP_VSIP_TO_TWO(CADD, cadd, T, vsip_cscalar_##T, vsip_cscalar_##T)   \
  TRANSHIP_VSIP_TO_TWO(CSUB, csub, T, vsip_cscalar_##T, vsip_cscalar_##T)   \
  TRANSHIP_VSIP_TO_TWO(CMUL, cmul, T, vsip_cscalar_##T, vsip_cscalar_##T)   \
  TRANSHIP_VSIP_TO_TWO(CJMUL, cjmul, T, vsip_cscalar_##T, vsip_cscalar_##T) \
  TRANSHIP_VSIP_TO_TWO(CDIV, cdiv, T, vsip_cscalar_##T, vsip_cscalar_##T)   \
  TRANSHIP_VSIP_TO_TWO(RCADD, rcadd, T, vsip_scalar_##T, vsip_cscalar_##T)  \
  TRANSHIP_VSIP_TO_TWO(RCSUB, rcsub, T, vsip_scalar_##T, vsip_cscalar_##T)  \
  TRANSHIP_VSIP_TO_TWO(RCMUL, rcmul, T, vsip_scalar_##T, vsip_cscalar_##T)  \
  TRANSHIP_VSIP_TO_TWO(CRSUB, crsub, T, vsip_cscalar_##T, vsip_scalar_##T)  \
  TRANSHIP_VSIP_TO_TWO(CRDIV, crdiv, T, vsip_cscalar_##T, vsip_scalar_##T)  \
  TRANSHIP_VSIP_TO_ONE(CNEG, cneg, T, vsip_cscalar_##T)                     \
  TRANSHIP_VSIP_TO_ONE(CONJ, conj, T, vsip_cscalar_##T)                     \
  TRANSHIP_VSIP_TO_ONE(CEXP, cexp, T, vsip_cscalar_##T)                     \
  TRANSHIP_VSIP_TO_ONE(CSQRT, csqrt, T, vsip_cscalar_##T)                   \
  TRANSHIP_VSIP_TO_ONE(CRECIP, crecip, T, vsip_cscalar_##T)
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

#define TRANSHIP_VSIP_DECLARE(T)                                                              \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_acos_##T(vsip_scalar_##T a) {                     \
    return TRANSHIP_VSIP_MATH_##T(acos)(a);                                                   \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_asin_##T(vsip_scalar_##T a) {                     \
    return TRANSHIP_VSIP_MATH_##T(asin)(a);                                                   \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_atan_##T(vsip_scalar_##T a) {                     \
    return TRANSHIP_VSIP_MATH_##T(atan)(a);                                                   \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_atan2_##T(vsip_scalar_##T a, vsip_scalar_##T b) { \
    return TRANSHIP_VSIP_MATH_##T(atan2)(a, b);                                               \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_ceil_##T(vsip_scalar_##T a) {                     \
    return TRANSHIP_VSIP_MATH_##T(ceil)(a);                                                   \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_cos_##T(vsip_scalar_##T a) {                      \
    return TRANSHIP_VSIP_MATH_##T(cos)(a);                                                    \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_cosh_##T(vsip_scalar_##T a) {                     \
    return TRANSHIP_VSIP_MATH_##T(cosh)(a);                                                   \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_exp_##T(vsip_scalar_##T a) {                      \
    return TRANSHIP_VSIP_MATH_##T(exp)(a);                                                    \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_exp10_##T(vsip_scalar_##T a) {                    \
    return TRANSHIP_VSIP_MATH_##T(pow)(10, a);                                                \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_floor_##T(vsip_scalar_##T a) {                    \
    return TRANSHIP_VSIP_MATH_##T(floor)(a);                                                  \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_fmod_##T(vsip_scalar_##T a, vsip_scalar_##T b) {  \
    return TRANSHIP_VSIP_MATH_##T(fmod)(a, b);                                                \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_hypot_##T(vsip_scalar_##T a, vsip_scalar_##T b) { \
    return TRANSHIP_VSIP_MATH_##T(hypot)(a, b);                                               \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_log_##T(vsip_scalar_##T a) {                      \
    return TRANSHIP_VSIP_MATH_##T(log)(a);                                                    \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_log10_##T(vsip_scalar_##T a) {                    \
    return TRANSHIP_VSIP_MATH_##T(log10)(a);                                                  \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_mag_##T(vsip_scalar_##T a) {                      \
    return TRANSHIP_VSIP_MATH_##T(fabs)(a);                                                   \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_max_##T(vsip_scalar_##T a, vsip_scalar_##T b) {   \
    return a < b ? b : a;                                                                     \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_min_##T(vsip_scalar_##T a, vsip_scalar_##T b) {   \
    return b < a ? b : a;                                                                     \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_pow_##T(vsip_scalar_##T a, vsip_scalar_##T b) {   \
    return TRANSHIP_VSIP_MATH_##T(pow)(a, b);                                                 \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_recip_##T(vsip_scalar_##T a) {                    \
    return 1 / a;                                                                             \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_rsqrt_##T(vsip_scalar_##T a) {                    \
    return 1 / TRANSHIP_VSIP_MATH_##T(sqrt)(a);                                               \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_sin_##T(vsip_scalar_##T a) {                      \
    return TRANSHIP_VSIP_MATH_##T(sin)(a);                                                    \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_sinh_##T(vsip_scalar_##T a) {                     \
    return TRANSHIP_VSIP_MATH_##T(sinh)(a);                                                   \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_sqrt_##T(vsip_scalar_##T a) {                     \
    return TRANSHIP_VSIP_MATH_##T(sqrt)(a);                                                   \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_tan_##T(vsip_scalar_##T a) {                      \
    return TRANSHIP_VSIP_MATH_##T(tan)(a);                                                    \
  }                                                                                           \
  TRANSHIP_VSIP_INLINE vsip_scalar_##T vsip_tanh_##T(vsip_scalar_##T a) {                     \
    return TRANSHIP_VSIP_MATH_##T(tanh)(a);                                                   \
  }
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

TRANSHIP_VSIP_INLINE vsip_scalar_mi vsip_matindex(vsip_index row, vsip_index column) {
  vsip_scalar_mi index;
  index.r = row, index.c = column;
  return index;
}
TRANSHIP_VSIP_INLINE void vsip_MATINDEX(vsip_index row, vsip_index column, vsip_scalar_mi* r) {
  *r = vsip_matindex(row, column);
}
TRANSHIP_VSIP_INLINE vsip_index vsip_rowindex(vsip_scalar_mi index) {
  return index.r;
}
TRANSHIP_VSIP_INLINE vsip_index vsip_colindex(vsip_scalar_mi index) {
  return index.c;
}

/* ---- Additions of tranship -------------------------------------------------------------------------------------- */

/* Sets the handler that the library `tranship::vsip_checked` calls for a wrong call, with the name of the function and
 * a message that names both numbers. When the handler returns, the failed call has no effect and returns 0 or NULL.
 * Without a handler, the message goes to the standard error stream and the program aborts. Returns the previous handler
 * (NULL at first). `tranship::vsip` calls the handler in one case: an FFT finds no memory for its plan. */
typedef void (*tranship_vsip_handler)(const char* call, const char* message);
tranship_vsip_handler tranship_vsip_set_handler(tranship_vsip_handler handler);

/* The place of a view's elements in memory. Element (i, j, k) lies at
 * data + i * strides[0] + j * strides[1] + k * strides[2], in units of vsip_scalar. For complex elements, `data` points
 * to real parts and `imaginary` to imaginary parts, with the same strides in units of a part; `imaginary` is NULL for
 * real elements. The addresses are those of the first element, and stay valid until the block is destroyed, released or
 * rebound. */
typedef struct {
  void* data;
  void* imaginary;
  vsip_stride strides[3];
  vsip_length lengths[3];
} tranship_vsip_place;
#define TRANSHIP_VSIP_DECLARE(P, T) tranship_vsip_place tranship_##P##vplace_##T(const P##vview_##T* view);
TRANSHIP_VSIP_VECTOR_NAMES(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
#define TRANSHIP_VSIP_DECLARE(P, T) tranship_vsip_place tranship_##P##mplace_##T(const P##mview_##T* view);
TRANSHIP_VSIP_MATRIX_NAMES(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
#define TRANSHIP_VSIP_DECLARE(P, T) tranship_vsip_place tranship_##P##tplace_##T(const P##tview_##T* view);
TRANSHIP_VSIP_TENSOR_NAMES(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

/* For libraries that lend views and blocks to a program, as dri.h does. `keeper(object)` is called before the view or
 * the block is destroyed, by any of the calls that do so. If it returns 0, the object is destroyed; otherwise the
 * object stays, and the call returns its usual value. NULL, the default, destroys the object without a call. */
typedef int (*tranship_vsip_keeper)(const void* object);
#define TRANSHIP_VSIP_DECLARE(P, T) void tranship_##P##vkeep_##T(P##vview_##T* view, tranship_vsip_keeper keeper);
TRANSHIP_VSIP_VECTOR_NAMES(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
#define TRANSHIP_VSIP_DECLARE(P, T) void tranship_##P##mkeep_##T(P##mview_##T* view, tranship_vsip_keeper keeper);
TRANSHIP_VSIP_MATRIX_NAMES(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
#define TRANSHIP_VSIP_DECLARE(P, T) void tranship_##P##tkeep_##T(P##tview_##T* view, tranship_vsip_keeper keeper);
TRANSHIP_VSIP_TENSOR_NAMES(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
#define TRANSHIP_VSIP_DECLARE(T, U) \
  void tranship_vsip_blockkeep_##T(vsip_block_##T* block, tranship_vsip_keeper keeper);
TRANSHIP_VSIP_BLOCKS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
#define TRANSHIP_VSIP_DECLARE(T) void tranship_vsip_cblockkeep_##T(vsip_cblock_##T* block, tranship_vsip_keeper keeper);
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE

#ifdef __cplusplus
}
#endif

/* ---- Names of the draft of the Data Reorganization Interface ---------------------------------------------------- */
/* That draft takes views from VSIPL under other names: scalars of vsipl_, vector calls without a suffix, and an fftm
 * that is created by seven arguments of the call that runs it. In C11 and C++ the calls without a suffix take vectors
 * of all types, real and complex. In C89 and C99, which do not choose by types, they are the forms of float; the types
 * without a suffix are so everywhere. C89 does not choose by the number of arguments: there, vsip_ccfftmip_f runs an
 * fftm. */

#define TRANSHIP_VSIP_DECLARE(T, U) typedef vsip_scalar_##T vsipl_scalar_##T;
TRANSHIP_VSIP_BLOCKS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
typedef vsip_cscalar_f vsipl_cscalar_f;
typedef vsip_cscalar_d vsipl_cscalar_d;
typedef vsip_vview_f vsip_vview;
typedef vsip_cvview_f vsip_cvview;
#define vsipl_cmget_f vsip_cmget_f
#define vsipl_cmget_d vsip_cmget_d
#define vsipl_cmput_f vsip_cmput_f
#define vsipl_cmput_d vsip_cmput_d

#ifdef __cplusplus
extern "C++" {
#define TRANSHIP_VSIP_DECLARE(P, T)                                                                 \
  static inline P##vview_##T* vsip_vcloneview(const P##vview_##T* view) {                           \
    return P##vcloneview_##T(view);                                                                 \
  }                                                                                                 \
  static inline P##block_##T* vsip_vdestroy(P##vview_##T* view) {                                   \
    return P##vdestroy_##T(view);                                                                   \
  }                                                                                                 \
  static inline P##scalar_##T vsip_vget(const P##vview_##T* view, vsip_index i) {                   \
    return P##vget_##T(view, i);                                                                    \
  }                                                                                                 \
  static inline void vsip_vput(const P##vview_##T* view, vsip_index i, P##scalar_##T value) {       \
    P##vput_##T(view, i, value);                                                                    \
  }                                                                                                 \
  static inline void vsip_vgetattrib(const P##vview_##T* view, P##vattr_##T* attributes) {          \
    P##vgetattrib_##T(view, attributes);                                                            \
  }                                                                                                 \
  static inline P##vview_##T* vsip_vputattrib(P##vview_##T* view, const P##vattr_##T* attributes) { \
    return P##vputattrib_##T(view, attributes);                                                     \
  }
TRANSHIP_VSIP_VECTOR_NAMES(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
#define TRANSHIP_VSIP_DECLARE(T)                                                                               \
  static inline vsip_vview_##T* vsip_vrealview(const vsip_cvview_##T* view) {                                  \
    return vsip_vrealview_##T(view);                                                                           \
  }                                                                                                            \
  static inline vsip_vview_##T* vsip_vimagview(const vsip_cvview_##T* view) {                                  \
    return vsip_vimagview_##T(view);                                                                           \
  }                                                                                                            \
  static inline void vsip_cmview_getattrib(const vsip_cmview_##T* view, vsip_cmattr_##T* attributes) {         \
    vsip_cmgetattrib_##T(view, attributes);                                                                    \
  }                                                                                                            \
  static inline vsip_fftm_##T* vsip_ccfftmip_##T(vsip_length rows, vsip_length columns, vsip_scalar_##T scale, \
                                                 vsip_fft_dir dir, vsip_major major, unsigned int ntimes,      \
                                                 vsip_alg_hint hint) {                                         \
    return vsip_ccfftmip_create_##T(rows, columns, scale, dir, major, ntimes, hint);                           \
  }
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_DECLARE)
#undef TRANSHIP_VSIP_DECLARE
}
#else
#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define TRANSHIP_VSIP_PICK(VIEW, CALL) , VIEW* : CALL, const VIEW* : CALL
#define TRANSHIP_VSIP_PICK_REAL(NAME, T) TRANSHIP_VSIP_PICK(vsip_vview_##T, vsip_##NAME##_##T)
#define TRANSHIP_VSIP_PICK_COMPLEX(NAME, T) TRANSHIP_VSIP_PICK(vsip_cvview_##T, vsip_c##NAME##_##T)
#define TRANSHIP_VSIP_BY_VECTOR(view, NAME) \
  _Generic((view)TRANSHIP_VSIP_EACH_TYPE(TRANSHIP_VSIP_PICK_REAL, TRANSHIP_VSIP_PICK_COMPLEX, NAME))
#define TRANSHIP_VSIP_BY_COMPLEX(view, SHAPE, NAME)                        \
  _Generic((view)TRANSHIP_VSIP_PICK(vsip_##SHAPE##view_f, vsip_##NAME##_f) \
               TRANSHIP_VSIP_PICK(vsip_##SHAPE##view_d, vsip_##NAME##_d))
#define vsip_vcloneview(view) TRANSHIP_VSIP_BY_VECTOR(view, vcloneview)(view)
#define vsip_vdestroy(view) TRANSHIP_VSIP_BY_VECTOR(view, vdestroy)(view)
#define vsip_vget(view, i) TRANSHIP_VSIP_BY_VECTOR(view, vget)(view, i)
#define vsip_vput(view, i, value) TRANSHIP_VSIP_BY_VECTOR(view, vput)(view, i, value)
#define vsip_vgetattrib(view, attributes) TRANSHIP_VSIP_BY_VECTOR(view, vgetattrib)(view, attributes)
#define vsip_vputattrib(view, attributes) TRANSHIP_VSIP_BY_VECTOR(view, vputattrib)(view, attributes)
#define vsip_vrealview(view) TRANSHIP_VSIP_BY_COMPLEX(view, cv, vrealview)(view)
#define vsip_vimagview(view) TRANSHIP_VSIP_BY_COMPLEX(view, cv, vimagview)(view)
#define vsip_cmview_getattrib(view, attributes) TRANSHIP_VSIP_BY_COMPLEX(view, cm, cmgetattrib)(view, attributes)
#else
#define vsip_vcloneview vsip_vcloneview_f
#define vsip_vdestroy vsip_vdestroy_f
#define vsip_vget vsip_vget_f
#define vsip_vput vsip_vput_f
#define vsip_vgetattrib vsip_vgetattrib_f
#define vsip_vputattrib vsip_vputattrib_f
#define vsip_vrealview vsip_vrealview_f
#define vsip_vimagview vsip_vimagview_f
#define vsip_cmview_getattrib vsip_cmgetattrib_f
#endif
#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L
#define TRANSHIP_VSIP_EIGHTH(A1, A2, A3, A4, A5, A6, A7, A8, ...) A8
#define TRANSHIP_VSIP_RUN_OR_CREATE(RUN, CREATE, ...)                                                              \
  TRANSHIP_VSIP_EIGHTH(__VA_ARGS__, CREATE, vsip_takes_2_or_7_arguments, vsip_takes_2_or_7_arguments,              \
                       vsip_takes_2_or_7_arguments, vsip_takes_2_or_7_arguments, RUN, vsip_takes_2_or_7_arguments) \
  (__VA_ARGS__)
#define vsip_ccfftmip_f(...) TRANSHIP_VSIP_RUN_OR_CREATE(vsip_ccfftmip_f, vsip_ccfftmip_create_f, __VA_ARGS__)
#define vsip_ccfftmip_d(...) TRANSHIP_VSIP_RUN_OR_CREATE(vsip_ccfftmip_d, vsip_ccfftmip_create_d, __VA_ARGS__)
#endif
#endif

#endif
