/*
 * The Data Reorganization Interface (DRI, https://data-re.org) over tranship: global data, partitions with overlap,
 * layouts, and persistent multi-buffered channels between two groups of ranks. C and C++. docs/dri.md is the manual,
 * with both dialects side by side.
 *
 * Dialects. By default this header declares the names of the draft interface, in which a handle is a pointer
 * (DRI_Global_Data *, DRI_Channel *). If DRI_DIALECT_1_0 is defined before it is included, it declares the names of DRI
 * 1.0, in which a handle is a value (DRI_Globaldata, DRI_Reorg). Both are the same functions of one library.
 *
 * Return codes. Every function that returns int returns DRI_SUCCESS (0) or a code that DRI_Error_string describes;
 * DRI_Error_detail says what was wrong in the last call of this thread that failed. Misuse is found before any effect:
 * outputs are set on success only. NULL handles, handles that were destroyed, and handles of another kind are refused
 * with DRI_ERR_HANDLE.
 *
 * Waiting. DRI_Channel_connect and DRI_Channel_get wait; DRI_Channel_destroy waits for frames that were put. Every wait
 * ends after the timeout of the world (60 s, or TRANSHIP_TIMEOUT seconds) with DRI_ERR_TIMEOUT, or with DRI_ERR_PEER
 * when a rank has failed; the detail says which rank waits for which. A loop over the test forms in which this rank
 * does nothing else ends in the same way. After a timeout, the call may be repeated.
 *
 * Threads. A rank is a process, or a thread of DRI_Launch_threads. Channels and groups are used by the thread of their
 * rank; the other handles are values that any thread may read.
 */
#ifndef TRANSHIP_DRI_H
#define TRANSHIP_DRI_H

#include <stddef.h>
#include <stdint.h>

/* C89 has no `inline`. */
#if defined(__GNUC__) && !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
#define DRI_INLINE_ static __inline__
#else
#define DRI_INLINE_ static inline
#endif
/* In C, any number may be passed as an enumeration. The library must be able to inspect it. */
#ifdef __cplusplus
#define DRI_ENUM_ : int
extern "C" {
#else
#define DRI_ENUM_
#endif

/* ---- Return codes ----------------------------------------------------------------------------------------------- */

enum {
  DRI_SUCCESS = 0,
  DRI_ERR_HANDLE = 1,      /* NULL, destroyed, or not of this kind */
  DRI_ERR_ARGUMENT = 2,    /* a value out of range, or NULL where a pointer is needed */
  DRI_ERR_ORDER = 3,       /* a call at the wrong time: before DRI_Init, get on a channel that is not connected */
  DRI_ERR_MISMATCH = 4,    /* two sides that must agree do not */
  DRI_ERR_UNSUPPORTED = 5, /* this combination cannot be done */
  DRI_ERR_NO_MEMORY = 6,
  DRI_ERR_TIMEOUT = 7,
  DRI_ERR_PEER = 8,     /* another rank has failed or left */
  DRI_ERR_INTERNAL = 9, /* a defect of the library */
  DRI_ERR_PROGRAM = 10, /* a rank of DRI_Launch_threads or DRI_Simulate has returned a code other than 0 */
  DRI_ERR_END = 11      /* the stream has ended: the sending side has destroyed its end, and all frames have been got */
};

/* Returns a static text; "unknown code" for an unknown code. */
const char *DRI_Error_string(int code);
/* Returns the reason of the last failed call of this thread, or "" if none has failed. Valid until the next failure. */
const char *DRI_Error_detail(void);
/* For wrappers of these functions: sets the text that DRI_Error_detail returns, and returns `code`. */
int DRI_Error_report(int code, const char *detail);

/* ---- Handles ---------------------------------------------------------------------------------------------------- */

struct dri_global_data;
struct dri_group;
struct dri_overlap;
struct dri_partition;
struct dri_layout;
struct dri_distribution;
struct dri_bufferset;
struct dri_channel;
struct dri_buffer;

#ifdef DRI_DIALECT_1_0
typedef struct dri_global_data *DRI_Globaldata;
typedef struct dri_group *DRI_Group;
typedef struct dri_overlap *DRI_Overlap;
typedef struct dri_distribution *DRI_Distribution;
typedef struct dri_bufferset *DRI_Bufferset;
typedef struct dri_channel *DRI_Reorg;
typedef struct dri_buffer *DRI_Datapart;
#else
typedef struct dri_global_data DRI_Global_Data;
typedef struct dri_group DRI_Group;
typedef struct dri_overlap DRI_Overlap;
typedef struct dri_distribution DRI_Distribution;
typedef struct dri_bufferset DRI_Bufferset;
typedef struct dri_channel DRI_Channel;
typedef struct dri_buffer DRI_Buffer_Id;
#endif
typedef struct dri_partition *DRI_Partition;
typedef struct dri_layout *DRI_Layout;

/* ---- Starting and ending ---------------------------------------------------------------------------------------- */

/* Collective over all ranks. A rank that `tranship launch` has started, or that DRI_Launch_threads or DRI_Simulate
 * runs, joins its world; a process of an MPI job joins the world of the job (docs/cluster.md). Any other process
 * becomes the only rank of a world of its own; if srun has started several without --mpi, this is refused unless the
 * environment has TRANSHIP_SEPARATE_WORLDS=1. The arguments may be NULL and are not changed. A process joins once. */
int DRI_Init(int *argc, char ***argv);
/* Leaves the world. Does not wait. Returns DRI_ERR_ORDER while channels exist. */
int DRI_Finalize(void);

/* Runs `body(argument)` on `ranks` threads of this process, each as one rank, and returns when all have ended. Returns
 * DRI_SUCCESS, DRI_ERR_PROGRAM if a body returned another code than 0 or returned without DRI_Finalize, or the code of
 * the failure that ended a rank. */
int DRI_Launch_threads(int ranks, int (*body)(void *), void *argument);
/* Runs `body` under a simulator: all ranks take turns on this thread, in an order that follows from the seed, and
 * messages arrive as late as is legal. A seed that fails, fails again. */
int DRI_Simulate(int ranks, uint64_t seed, int (*body)(void *), void *argument);

/* ---- Groups ----------------------------------------------------------------------------------------------------- */

/* Local. Make a group of all ranks; of `count` ranks of the world in this order, each once; of the ranks that run the
 * same program, when `tranship launch -n 2 a : -n 3 b` has started several. */
int DRI_Group_create_world(struct dri_group **group);
int DRI_Group_create(int count, const int ranks[], struct dri_group **group);
int DRI_Group_create_program(struct dri_group **group);
/* Sets *rank to this rank's place in the group, or to -1 if it is not a member. */
int DRI_Group_rank(const struct dri_group *group, int *rank);
int DRI_Group_size(const struct dri_group *group, int *size);
int DRI_Group_destroy(struct dri_group **group);

/* ---- Data types ------------------------------------------------------------------------------------------------- */

typedef enum DRI_ENUM_ {
  DRI_FLOAT = 1,
  DRI_DOUBLE = 2,
  DRI_COMPLEX = 3,              /* interleaved pairs of float */
  DRI_DOUBLE_COMPLEX = 4,       /* interleaved pairs of double */
  DRI_COMPLEX_SPLIT = 5,        /* a plane of real parts and one of imaginary parts */
  DRI_DOUBLE_COMPLEX_SPLIT = 6, /* two planes of double */
  DRI_INTEGER = 7,
  DRI_SHORT = 8,
  DRI_UNSIGNED_SHORT = 9,
  DRI_LONG = 10,
  DRI_UNSIGNED_LONG = 11,
  DRI_UNSINGED_LONG = 11 /* as the table of the draft spells it */
} DRI_Dataspec;
typedef DRI_Dataspec DRI_Datatype;

/* The names of a data type in each interface; NULL if it has none there. They are static. */
typedef struct {
  const char *dri;   /* "DRI_COMPLEX" */
  const char *mpi;   /* "MPI_C_FLOAT_COMPLEX" */
  const char *vsipl; /* "vsip_cscalar_f" */
  const char *c;     /* "float _Complex" */
  size_t bytes;      /* size of an element, both planes together */
} DRI_Dataspec_names;
int DRI_Dataspec_get_names(DRI_Dataspec type, DRI_Dataspec_names *names);
/* Finds the data type with this name in any of these interfaces; MPI's names in Fortran (MPI_INTEGER) and vsipl_
 * instead of vsip_ also count. Names of VSIPL and C stand for the interleaved type. Returns DRI_ERR_ARGUMENT for other
 * names. */
int DRI_Dataspec_from_name(const char *name, DRI_Dataspec *type);

/* ---- What is distributed, and how ------------------------------------------------------------------------------- */

/* Takes 1 to 8 dimensions. dims[d] is the extent of dimension d; the layout decides their order in memory. */
int DRI_Global_Data_create(int ndims, const int dims[], DRI_Dataspec type, struct dri_global_data **data);
int DRI_Global_Data_create_64(int ndims, const int64_t dims[], DRI_Dataspec type, struct dri_global_data **data);
int DRI_Global_Data_destroy(struct dri_global_data **data);

/* The content of an overlap where it reaches beyond the edge of the data. */
typedef enum DRI_ENUM_ {
  DRI_OVERLAP_TRUNCATE = 0,       /* nothing: it ends at the edge */
  DRI_OVERLAP_TOROIDAL = 1,       /* the elements from the other end */
  DRI_OVERLAP_PAD_ZEROS = 2,      /* zeros */
  DRI_OVERLAP_PAD_REPLICATED = 3, /* the last element that the slice owns, repeated (as decided in March 2000) */
  DRI_OVERLAP_PAD_REPLICATED_GLOBAL = 4 /* the last element of the data, repeated */
} DRI_Overlap_type;
/* Makes an overlap of `positions` elements on one side of each slice. */
int DRI_Overlap_create(DRI_Overlap_type type, int positions, struct dri_overlap **overlap);
int DRI_Overlap_destroy(struct dri_overlap **overlap);

/* A partition says how one dimension is cut. Overlaps may be NULL: none. */
int DRI_Partition_whole_create(DRI_Partition *partition);
/* Gives each process one block. Blocks are balanced; the first ones are larger by one. Every part but the last has a
 * multiple of `modulo` elements (1: any) and at least `minimum` (0: any); late parts may be empty. */
int DRI_Partition_block_create(const struct dri_overlap *left, const struct dri_overlap *right, int minimum, int modulo,
                               DRI_Partition *partition);
/* Deals blocks of `size` elements to the processes in turn. The overlap counts elements and surrounds every block. */
int DRI_Partition_blockcyclic_create(const struct dri_overlap *left, const struct dri_overlap *right, int size,
                                     DRI_Partition *partition);
typedef enum DRI_ENUM_ {
  DRI_REMAINDER_LOW = 0,  /* one element more on each of the first processes, as block_create does */
  DRI_REMAINDER_HIGH = 1, /* one element more on each of the last processes */
  DRI_REMAINDER_CEIL = 2  /* blocks of ceil(extent / processes), the last ones short or empty: HPF, ScaLAPACK, FFTW */
} DRI_Remainder;
/* Sets which processes of a block partition get the elements that do not divide evenly. */
int DRI_Partition_set_remainder(DRI_Partition partition, DRI_Remainder remainder);
int DRI_Partition_destroy(DRI_Partition *partition);

/* A layout says how local data lies in memory. order[0] is the fastest dimension, order[1] the next one. strides[d] is
 * the stride of dimension d in units of the space that the faster dimensions take: 1 is dense; {1, 2} with 64 elements
 * in the fastest dimension leaves a pitch of 128 elements. `offset` elements are left free in front. Both arrays have
 * one entry per dimension of the data; NULL means 0, 1, 2 ... and dense. This call does not know their length, so both
 * arrays must live as long as the layout is used; they are checked when a distribution is made. */
int DRI_Layout_create(int64_t offset, const int order[], const int strides[], DRI_Layout *layout);
/* Makes a layout of `ndims` dimensions. Copies the arrays, and checks them at once. */
int DRI_Layout_create_nd(int ndims, int64_t offset, const int order[], const int strides[], DRI_Layout *layout);
int DRI_Layout_destroy(DRI_Layout *layout);

/* Puts `processes[d]` processes along dimension d; their product is the size of the group. The last dimension is
 * fastest through the ranks of the group, as in MPI_Cart_create. `layout` may be NULL: packed, dimension 0 fastest.
 * Local. Copies all arguments, which may then be destroyed. */
int DRI_Distribution_create(const struct dri_global_data *data, const struct dri_group *group, const int processes[],
                            const DRI_Partition partitions[], DRI_Layout layout, struct dri_distribution **distribution);
int DRI_Distribution_destroy(struct dri_distribution **distribution);

/* Sets *slices to the number of slices of this rank. Slices are the products of the blocks along the dimensions; there
 * are several if a dimension is block-cyclic. They are numbered with the slices of the last dimension fastest. */
int DRI_Distribution_get_numslices(const struct dri_distribution *distribution, int *slices);
/* Sets slices[d] to the number of slices along dimension d; `slices` has room for one number per dimension. */
int DRI_Distribution_get_numslices_multid(const struct dri_distribution *distribution, int slices[]);
/* Sets *bytes to the size of a user buffer; for split complex types, of each of its two planes. */
int DRI_Distribution_get_bufsize(const struct dri_distribution *distribution, size_t *bytes);

enum { DRI_DIMS_MAX = 8 };
/* One dimension of a slice. In overlap, `first` may be negative and first + length may exceed the extent. */
typedef struct {
  int64_t first;  /* global position of the first stored element */
  int64_t length; /* stored elements, overlap included */
  int64_t left;   /* of these, overlap to the left of the owned elements */
  int64_t right;  /* of these, overlap to the right of the owned elements */
  int64_t stride; /* in elements */
} DRI_Blockdim;
typedef struct {
  int ndims;
  int64_t offset;                /* elements from the start of the buffer to the first stored one */
  int layout_order[DRI_DIMS_MAX]; /* dimensions, the fastest first */
  DRI_Blockdim dims[DRI_DIMS_MAX]; /* in global dimension order */
} DRI_Blockinfo;
/* Describes slice `slice` of this rank. The number is ignored if no dimension is block-cyclic. */
int DRI_Distribution_get_slice(const struct dri_distribution *distribution, int slice, DRI_Blockinfo *info);

/* ---- Buffers ---------------------------------------------------------------------------------------------------- */

/* Make `count` buffers for one channel, 1 to 256; the least common multiple of both sides' counts may be at most 256.
 * System buffers are allocated, zeroed, when the channel is connected, in memory that peers reach. User buffers must
 * outlive the channel; each has the size that DRI_Distribution_get_bufsize says, and they cost one more copy if ranks
 * are processes. `imaginary` has the second planes of split complex types, and is NULL for other types. */
int DRI_Bufferset_system_create(int count, const struct dri_distribution *distribution, struct dri_bufferset **buffers);
int DRI_Bufferset_user_create(int count, void *const memory[], void *const imaginary[],
                              const struct dri_distribution *distribution, struct dri_bufferset **buffers);
int DRI_Bufferset_destroy(struct dri_bufferset **buffers);

/* ---- Channels --------------------------------------------------------------------------------------------------- */

/* Local: make one end of channel `id` (0 or more). An id stands for one channel at a time in the whole world. */
int DRI_Channel_create_send(int id, const struct dri_distribution *distribution, struct dri_bufferset *buffers,
                            struct dri_channel **channel);
int DRI_Channel_create_recv(int id, const struct dri_distribution *distribution, struct dri_bufferset *buffers,
                            struct dri_channel **channel);
/* Collective over the ranks of both sides; waits for all of them and plans the transfer. A rank that is on both sides
 * creates both ends first and then connects both: the first of the two calls returns at once. Ranks that have several
 * channels in common connect them in the same order. Ranks of neither side take no part. */
int DRI_Channel_connect(struct dri_channel *channel);
/* Gets the next buffer in the rotation, first in, first out. At a sending end, waits until the buffer is empty. At a
 * receiving end, waits until it is full, and returns DRI_ERR_END when no frame is left and the sending side has
 * destroyed its end. Frames that this rank has put on any channel move on meanwhile. The program may hold all buffers
 * at once; DRI_ERR_ORDER when it already does. */
int DRI_Channel_get(struct dri_channel *channel, struct dri_buffer **buffer);
/* Puts back the buffer that the program has held longest, and sets *buffer to NULL. At a sending end, launches it. At a
 * receiving end, lets it be overwritten. Never waits. */
int DRI_Channel_put(struct dri_channel *channel, struct dri_buffer **buffer);
/* Never wait: *flag says whether the get or the put took place. */
int DRI_Channel_gettest(struct dri_channel *channel, struct dri_buffer **buffer, int *flag);
int DRI_Channel_puttest(struct dri_channel *channel, struct dri_buffer **buffer, int *flag);
/* At a sending end, waits until all frames that were put have left this rank. */
int DRI_Channel_flush(struct dri_channel *channel);
/* Flushes the channel, then ends this side of it on this rank and makes the handle invalid, even if the call returns an
 * error. Destroys the channel's views. A rank on both sides may destroy its ends in either order. */
int DRI_Channel_destroy(struct dri_channel **channel);

/* Return the memory of a held buffer: the first plane, and the second plane of a split complex type, otherwise NULL. */
int DRI_Buffer_get_memory(const struct dri_buffer *buffer, void **memory, void **imaginary);
int DRI_Buffer_get_bytes(const struct dri_buffer *buffer, size_t *bytes);
int DRI_Buffer_get_type(const struct dri_buffer *buffer, DRI_Dataspec *type);
int DRI_Buffer_get_slice(const struct dri_buffer *buffer, int slice, DRI_Blockinfo *info);
/* Computes the linear number of a slice from one number per dimension; numbers of dimensions that are not block-cyclic
 * are ignored. */
int DRI_Buffer_get_slice_number(const struct dri_buffer *buffer, const int slices[], int *slice);
/* The part of a slice that a view of 1 to 3 dimensions shows, x first. If the data has more dimensions than the view,
 * the view omits dimensions whose slices on this rank all have length 1: first those with an extent of 1, and of these
 * the last ones first. If the data has fewer, the other dimensions of the view have length 1. */
typedef struct {
  void *real;      /* the block, or its first plane */
  void *imaginary; /* its second plane, for split complex types, else NULL */
  size_t elements; /* size of the block */
  int64_t offset;  /* first element of the view in the block, in elements; so are strides */
  int64_t length[3], stride[3];
  int slice; /* its linear number; 0 where no dimension is block-cyclic */
} DRI_Viewshape;
/* Return the shape of a view, by the linear number of the slice (ignored if no dimension is block-cyclic), or by one
 * number for each of the `dims` dimensions of the view (ignored where that dimension is not block-cyclic). The latter
 * is refused if an omitted dimension has several slices. DRI_ERR_MISMATCH if `type` is not the type of the data
 * (DRI_COMPLEX also stands for DRI_COMPLEX_SPLIT), or if too many dimensions are left. The view calls below
 * use these. */
int DRI_Buffer_get_viewshape(const struct dri_buffer *buffer, DRI_Dataspec type, int dims, int slice,
                             DRI_Viewshape *shape);
int DRI_Buffer_multid_get_viewshape(const struct dri_buffer *buffer, DRI_Dataspec type, int dims, const int slices[],
                                    DRI_Viewshape *shape);
/* Returns the shapes of all slices of this rank in one call, in the order of their numbers, for views of `dims`
 * dimensions. A frame has no memory yet, so `real` and `imaginary` are NULL. `count` is the room in `shapes`;
 * DRI_ERR_ARGUMENT if it is less than DRI_Distribution_get_numslices says. */
int DRI_Distribution_get_viewshapes(const struct dri_distribution *distribution, int dims, int count,
                                    DRI_Viewshape shapes[]);
/* Keeps a pointer of the program's own with the buffer until its channel is destroyed, which calls `release` with it,
 * in the order of the keys. A key keeps one pointer; attaching NULL releases it. Keys below 0 are for the view calls.
 * `on_put` is called before the buffer is put. Both functions may be NULL. */
int DRI_Buffer_attach(struct dri_buffer *buffer, int64_t key, void *value, void (*on_put)(void *),
                      void (*release)(void *));
void *DRI_Buffer_attached(const struct dri_buffer *buffer, int64_t key);
/* Lends an object to the program, as the view calls lend views of a held buffer and its block. `end` is called with the
 * object when the loan ends. A loan to the holder ends when the buffer is put, unless the program has destroyed the
 * object before. A loan of the channel ends when the channel is destroyed; the program cannot destroy that object. */
typedef enum DRI_ENUM_ { DRI_LOAN_TO_HOLDER = 0, DRI_LOAN_OF_CHANNEL = 1 } DRI_Loan;
int DRI_Buffer_lend(struct dri_buffer *buffer, DRI_Loan loan, void *object, void (*end)(void *));
/* Call this before the program destroys an object that may be lent. Returns 1 if the channel keeps the object, so that
 * it must stay. Otherwise returns 0 and the object may be destroyed: it is not lent, or its loan to the holder ends
 * now, without a call of `end`. */
int DRI_Loan_stays(const void *object);

/* ---- The names of DRI 1.0 --------------------------------------------------------------------------------------- */

typedef enum DRI_ENUM_ { DRI_SEND = 1, DRI_RECV = 2 } DRI_Side;
typedef enum DRI_ENUM_ { DRI_LIBRARY_NATIVE = 0 } DRI_Library;
/* Makes global data without a data type: the reorg has the type. */
int DRI_Globaldata_create(int ndims, const int dims[], struct dri_global_data **data);
int DRI_Globaldata_destroy(struct dri_global_data **data);
int DRI_Distribution_get_numblocks(const struct dri_distribution *distribution, int *blocks);
int DRI_Distribution_get_blockinfo(const struct dri_distribution *distribution, int block, DRI_Blockinfo *info);
/* Sets *bytes to the size of a buffer whose elements have this type. */
int DRI_Distribution_get_bufsize_of(const struct dri_distribution *distribution, DRI_Datatype type, size_t *bytes);
/* Local: make one end of the reorganization of this name (1 to 1024 characters, no new line), with `count` system or
 * user buffers. */
int DRI_Reorg_create(DRI_Library library, DRI_Side side, const char *name, DRI_Datatype type,
                     const struct dri_distribution *distribution, int count, struct dri_channel **reorg);
int DRI_Reorg_create_user(DRI_Library library, DRI_Side side, const char *name, DRI_Datatype type,
                          const struct dri_distribution *distribution, int count, void *const memory[],
                          void *const imaginary[], struct dri_channel **reorg);
int DRI_Reorg_connect(struct dri_channel *reorg);
int DRI_Reorg_get(struct dri_channel *reorg, struct dri_buffer **part);
int DRI_Reorg_put(struct dri_channel *reorg, struct dri_buffer **part);
int DRI_Reorg_gettest(struct dri_channel *reorg, struct dri_buffer **part, int *flag);
int DRI_Reorg_puttest(struct dri_channel *reorg, struct dri_buffer **part, int *flag);
int DRI_Reorg_destroy(struct dri_channel **reorg);

#undef DRI_ENUM_
#ifdef __cplusplus
}
#endif

/* ---- Data types of C, VSIPL and MPI ----------------------------------------------------------------------------- */
/* DRI_DATASPEC_OF(float), in C11 and C++, is the data type of a C type or a VSIPL scalar. DRI_Dataspec_to_mpi and
 * DRI_Dataspec_from_mpi convert to and from an MPI_Datatype; include <mpi.h> before this header. A split complex type
 * has no MPI type, and before MPI 2.2 no complex type has one: to_mpi then returns DRI_ERR_UNSUPPORTED. */

#if !defined(DRI_NO_VIEWS) && defined(__has_include)
#if __has_include(<vsip.h>)
#include <vsip.h>
#define DRI_TYPES_OF_VSIPL(X) X(vsip_cscalar_f, DRI_COMPLEX) X(vsip_cscalar_d, DRI_DOUBLE_COMPLEX)
#endif
#endif
#ifndef DRI_TYPES_OF_VSIPL
#define DRI_TYPES_OF_VSIPL(X)
#endif
/* Real scalars of VSIPL are types of C, too. */
#define DRI_TYPES_OF_C(X)                                                                                    \
  X(float, DRI_FLOAT) X(double, DRI_DOUBLE) X(int, DRI_INTEGER) X(short, DRI_SHORT)                          \
  X(unsigned short, DRI_UNSIGNED_SHORT) X(long, DRI_LONG) X(unsigned long, DRI_UNSIGNED_LONG)

#ifdef __cplusplus
#define DRI_TYPE_OF(T, TYPE)                           \
  constexpr DRI_Dataspec dri_dataspec_of(const T *) { \
    return TYPE;                                       \
  }
DRI_TYPES_OF_C(DRI_TYPE_OF)
DRI_TYPES_OF_VSIPL(DRI_TYPE_OF)
#undef DRI_TYPE_OF
#define DRI_DATASPEC_OF(T) dri_dataspec_of(static_cast<const T *>(nullptr))
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define DRI_TYPE_OF(T, TYPE) , const T *: TYPE
#ifdef __STDC_NO_COMPLEX__
#define DRI_TYPES_OF_COMPLEX(X)
#else
#define DRI_TYPES_OF_COMPLEX(X) X(float _Complex, DRI_COMPLEX) X(double _Complex, DRI_DOUBLE_COMPLEX)
#endif
#define DRI_DATASPEC_OF(T) \
  _Generic((const T *)0 DRI_TYPES_OF_C(DRI_TYPE_OF) DRI_TYPES_OF_COMPLEX(DRI_TYPE_OF) DRI_TYPES_OF_VSIPL(DRI_TYPE_OF))
#endif

#ifdef MPI_VERSION
#if MPI_VERSION > 2 || (MPI_VERSION == 2 && MPI_SUBVERSION >= 2)
#define DRI_TYPES_OF_COMPLEX_MPI(X) X(DRI_COMPLEX, MPI_C_FLOAT_COMPLEX) X(DRI_DOUBLE_COMPLEX, MPI_C_DOUBLE_COMPLEX)
#else
#define DRI_TYPES_OF_COMPLEX_MPI(X)
#endif
#define DRI_TYPES_OF_MPI(X)                                                                                        \
  X(DRI_FLOAT, MPI_FLOAT) X(DRI_DOUBLE, MPI_DOUBLE) X(DRI_INTEGER, MPI_INT) X(DRI_SHORT, MPI_SHORT)                \
  X(DRI_UNSIGNED_SHORT, MPI_UNSIGNED_SHORT) X(DRI_LONG, MPI_LONG) X(DRI_UNSIGNED_LONG, MPI_UNSIGNED_LONG)          \
  DRI_TYPES_OF_COMPLEX_MPI(X)
DRI_INLINE_ int DRI_Dataspec_to_mpi(DRI_Dataspec type, MPI_Datatype *datatype) {
  DRI_Dataspec_names names;
  const int code = DRI_Dataspec_get_names(type, &names);
  if (code != DRI_SUCCESS) return code;
  if (datatype == NULL) return DRI_Error_report(DRI_ERR_ARGUMENT, "datatype is NULL");
#define DRI_TYPE_TO_MPI(TYPE, MPI) \
  if (type == TYPE) {              \
    *datatype = MPI;               \
    return DRI_SUCCESS;            \
  }
  DRI_TYPES_OF_MPI(DRI_TYPE_TO_MPI)
#undef DRI_TYPE_TO_MPI
  return DRI_Error_report(DRI_ERR_UNSUPPORTED, "MPI has no such data type");
}
DRI_INLINE_ int DRI_Dataspec_from_mpi(MPI_Datatype datatype, DRI_Dataspec *type) {
  if (type == NULL) return DRI_Error_report(DRI_ERR_ARGUMENT, "type is NULL");
#define DRI_TYPE_FROM_MPI(TYPE, MPI) \
  if (datatype == MPI) {             \
    *type = TYPE;                    \
    return DRI_SUCCESS;              \
  }
  DRI_TYPES_OF_MPI(DRI_TYPE_FROM_MPI)
#undef DRI_TYPE_FROM_MPI
  return DRI_Error_report(DRI_ERR_ARGUMENT, "DRI has no data type like this MPI_Datatype");
}
#endif

/* VSIPL views of buffers, if a <vsip.h> is found: tranship's or another. */
#if !defined(DRI_NO_VIEWS) && defined(__has_include)
#if __has_include(<vsip.h>)
#include <dri_views.h>
#endif
#endif
#undef DRI_INLINE_

#endif
