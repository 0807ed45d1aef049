/* DSpark's C API: open a plan that dspark-compile made, ask what it takes and gives, run it.
 *
 * Ownership  Objects are made by _open and _create and given back by _close and _destroy. A session keeps its
 * plan alive, so the two may be given back in any order. Everything else that is returned by pointer is
 * borrowed. Threads    A plan may be used by any number of threads at once. A session runs one call at a
 * time; use one session per thread. Sessions of one plan share its weights. Errors     A function that can
 * fail returns a dspark_status; the sentence for the last failure on the calling thread is
 * dspark_last_error(). A failed call changes nothing and leaves every object usable. */
#ifndef DSPARK_DSPARK_H
#define DSPARK_DSPARK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DSPARK_API __attribute__((visibility("default")))
#else
#define DSPARK_API
#endif

/* What the caller does next. */
typedef enum dspark_status {
  DSPARK_OK = 0,
  DSPARK_INVALID_ARGUMENT = 1, /* the call or an input is wrong: fix it */
  DSPARK_NOT_FOUND = 2,        /* no such file or name */
  DSPARK_IO_ERROR = 3,         /* reading failed: retry or check the disk */
  DSPARK_CORRUPT_FILE = 4,     /* the plan breaks its format's rules: compile it again */
  DSPARK_VERSION = 5,          /* the plan needs a newer runtime */
  DSPARK_UNSUPPORTED = 6,      /* this machine or runtime lacks something the plan needs */
  DSPARK_OUT_OF_MEMORY = 7,    /* give the session more memory, or a smaller input */
  DSPARK_MISMATCH = 8,         /* a result differs from what was expected */
  DSPARK_INTERNAL = 9          /* a bug of ours: please report it */
} dspark_status;

/* Element types; the numbers are ONNX's. Sub-byte types are packed, the first element in the lowest bits. */
typedef enum dspark_dtype {
  DSPARK_NONE = 0,
  DSPARK_F32 = 1,
  DSPARK_U8 = 2,
  DSPARK_I8 = 3,
  DSPARK_U16 = 4,
  DSPARK_I16 = 5,
  DSPARK_I32 = 6,
  DSPARK_I64 = 7,
  DSPARK_STRING = 8, /* elements are dspark_string */
  DSPARK_BOOL = 9,   /* one byte, 0 or 1 */
  DSPARK_F16 = 10,
  DSPARK_F64 = 11,
  DSPARK_U32 = 12,
  DSPARK_U64 = 13,
  DSPARK_C64 = 14,
  DSPARK_C128 = 15,
  DSPARK_BF16 = 16,
  DSPARK_F8E4M3FN = 17,
  DSPARK_F8E4M3FNUZ = 18,
  DSPARK_F8E5M2 = 19,
  DSPARK_F8E5M2FNUZ = 20,
  DSPARK_U4 = 21,
  DSPARK_I4 = 22,
  DSPARK_F4E2M1 = 23,
  DSPARK_F8E8M0 = 24,
  DSPARK_U2 = 25,
  DSPARK_I2 = 26
} dspark_dtype;

typedef struct dspark_plan dspark_plan;
typedef struct dspark_session dspark_session;

/* A tensor in memory of its owner. `strides` are in elements and may be negative or zero; NULL means dense
 * row-major. A tensor of rank 0 needs no dims; one without elements needs no data. */
typedef struct dspark_tensor {
  void *data;
  dspark_dtype dtype;
  int32_t rank;
  const int64_t *dims;
  const int64_t *strides;
} dspark_tensor;

/* An element of a string tensor: UTF-8, not terminated. The characters of inputs are lent for the call; those
 * of outputs are the session's until its next run, also where the elements are written into the caller's
 * memory. */
typedef struct dspark_string {
  const char *data;
  size_t size;
} dspark_string;

/* A model's inputs and outputs may be more than tensors. */
typedef enum dspark_kind {
  DSPARK_TENSOR = 0,
  DSPARK_SEQUENCE = 1, /* any number of items */
  DSPARK_OPTIONAL = 2, /* one item, or none */
  DSPARK_MAP = 3       /* two items: the tensors of keys and of values, both [n] */
} dspark_kind;

/* A tensor, or a list of items. The tree is its owner's, as tensors are. */
typedef struct dspark_value {
  dspark_kind kind;
  dspark_tensor tensor; /* of kind DSPARK_TENSOR */
  size_t item_count;    /* of other kinds */
  const struct dspark_value *items;
} dspark_value;

/* The declared type of an input or output. Valid as long as the plan. */
typedef struct dspark_type {
  dspark_kind kind;
  dspark_dtype dtype;  /* of a tensor; DSPARK_NONE: only a run tells */
  int32_t rank;        /* of a tensor; -1: any */
  const int64_t *dims; /* of a tensor; -1: any */
  size_t item_count;   /* a sequence's and an optional's is 1, the type of each item; a map's is 2 */
  const struct dspark_type *items;
} dspark_type;

/* What a plan says about an input or output. Valid as long as the plan. */
typedef struct dspark_tensor_info {
  const char *name;
  dspark_dtype dtype; /* DSPARK_NONE: only a run tells (outputs), or no tensor (dspark_plan_input_type) */
  int32_t rank;
  const int64_t *dims;          /* the number, or -1 where it depends on the inputs */
  const char *const *dim_texts; /* "3", "batch", "(seq + 1)", or "?" where only a run tells */
} dspark_tensor_info;

typedef struct dspark_session_options {
  size_t struct_size;    /* sizeof(dspark_session_options), set by dspark_session_options_init */
  int32_t threads;       /* 0: as many as the affinity mask and cgroup quota allow */
  uint64_t memory_limit; /* bytes for tensors and scratch, weights not counted; 0: what the machine has */
  const char
      *isa; /* highest instruction set: "baseline", "avx2", "avx512", "amx"; NULL: what the machine has */
  int32_t
      refuse_native_code; /* not 0: generated code in the plan is not loaded; catalogue kernels do its work */
  int32_t profile;        /* not 0: measure every step (dspark_session_profile) */
  int32_t
      adapt; /* not 0: choose again, from measured times, which device runs what, or how many threads run */
  const char *const
      *devices; /* plug-ins for devices of the plan, "NAME=LIBRARY.so[,CONFIG]"; lent for the call */
  size_t device_count;
  const char *learned; /* a file that dspark_session_save_learned wrote, to start with; NULL: none */
} dspark_session_options;

/* Times of one step, summed over the runs since the session was made. Valid until the next run. */
typedef struct dspark_profile_line {
  const char *node;   /* ONNX node names, "" if unknown */
  const char *op;     /* catalogue operator */
  const char *kernel; /* the kernel that ran */
  uint64_t calls;
  double seconds;
  double bytes; /* read and written */
  double flops;
} dspark_profile_line;

/* "0.1.0". */
DSPARK_API const char *dspark_version(void);

/* The sentence for the last failed call on this thread, "" if none has failed. Valid until the next failure.
 */
DSPARK_API const char *dspark_last_error(void);

/* Maps and checks a plan; weights are read when they are used. Errors: NOT_FOUND, IO_ERROR, CORRUPT_FILE,
 * VERSION, UNSUPPORTED (an operator that this runtime does not have). On failure *plan is NULL. */
DSPARK_API dspark_status dspark_plan_open(const char *path, dspark_plan **plan);
/* Gives a plan back; NULL is allowed. */
DSPARK_API void dspark_plan_close(dspark_plan *plan);
/* Reads all weights and checks them against their hashes: seconds per gigabyte. Errors: CORRUPT_FILE. */
DSPARK_API dspark_status dspark_plan_verify(const dspark_plan *plan);

DSPARK_API size_t dspark_plan_input_count(const dspark_plan *plan);
DSPARK_API size_t dspark_plan_output_count(const dspark_plan *plan);
/* Errors: INVALID_ARGUMENT if there is no such input or output. */
DSPARK_API dspark_status dspark_plan_input(const dspark_plan *plan, size_t index, dspark_tensor_info *info);
DSPARK_API dspark_status dspark_plan_output(const dspark_plan *plan, size_t index, dspark_tensor_info *info);
/* The types of those that may be sequences, optionals or maps. Errors: INVALID_ARGUMENT. */
DSPARK_API dspark_status dspark_plan_input_type(const dspark_plan *plan, size_t index, dspark_type *type);
DSPARK_API dspark_status dspark_plan_output_type(const dspark_plan *plan, size_t index, dspark_type *type);

/* Fills in the defaults. */
DSPARK_API void dspark_session_options_init(dspark_session_options *options);
/* Starts the threads; nothing else happens before the first run. `options` may be NULL for the defaults.
 * Errors: INVALID_ARGUMENT. On failure *session is NULL. */
DSPARK_API dspark_status dspark_session_create(const dspark_plan *plan, const dspark_session_options *options,
                                               dspark_session **session);
/* Gives a session back; NULL is allowed. Not while it runs. */
DSPARK_API void dspark_session_destroy(dspark_session *session);

/* Runs the plan. `inputs` are lent for the call, one per input of the plan in order. The first run with new
 * input shapes prepares for them; after that a run allocates nothing.
 *
 * `outputs` has one tensor per output of the plan in order, or is NULL (see dspark_session_output). An entry
 * whose data is NULL is filled in with a dense tensor of the session, valid until its next run. An entry with
 * data is the caller's memory: its dtype, rank and dims must be those of the result, which is written there
 * with its strides.
 *
 * Errors: INVALID_ARGUMENT names the input, dim, value found and expected; OUT_OF_MEMORY names the node;
 * UNSUPPORTED names the node that no kernel can do. */
DSPARK_API dspark_status dspark_session_run(dspark_session *session, const dspark_tensor *inputs,
                                            size_t input_count, dspark_tensor *outputs, size_t output_count);
/* The dense result of the last successful run, valid until the next one. Errors: INVALID_ARGUMENT. */
DSPARK_API dspark_status dspark_session_output(const dspark_session *session, size_t index,
                                               dspark_tensor *output);

/* dspark_session_run for plans whose inputs or outputs are more than tensors: `inputs` are lent for the call,
 * one per input in order. The structure of an input counts as its shape does: lists of another length are
 * prepared for anew. Outputs are asked for afterwards. Errors: as dspark_session_run. */
DSPARK_API dspark_status dspark_session_run_values(dspark_session *session, const dspark_value *inputs,
                                                   size_t input_count);
/* The result of the last successful run, valid until the next one. Errors: INVALID_ARGUMENT. */
DSPARK_API dspark_status dspark_session_output_value(const dspark_session *session, size_t index,
                                                     dspark_value *value);

/* Writes what a session with `adapt` and devices has learned, for this plan on this machine. Errors:
 * IO_ERROR. */
DSPARK_API dspark_status dspark_session_save_learned(const dspark_session *session, const char *path);

/* Lines of a session made with `profile`; 0 without. */
DSPARK_API size_t dspark_session_profile_count(dspark_session *session);
/* Errors: INVALID_ARGUMENT if there is no such line. */
DSPARK_API dspark_status dspark_session_profile(dspark_session *session, size_t index,
                                                dspark_profile_line *line);

#ifdef __cplusplus
}
#endif
#endif
