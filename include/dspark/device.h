/* What a device plug-in is to DSpark: a shared library with one function, dspark_device_query, that returns a
 * table of functions. docs/devices.md tells how they are used; devices/stub is an example.
 *
 * Order      Commands (copy_in, copy_out, launch) go into one queue per device and run in the order they were
 * given. They return at once with a ticket; tickets count up. Threads    An open device is used by one thread
 * at a time. Memory     Device memory is a number that the plug-in makes up, and offsets into it. Host memory
 * of a command stays lent until its ticket has been waited for, or stop() has returned. Errors     A command
 * that fails makes every later wait() return its error, and later commands are not run, until stop().
 * Functions never exit, throw or print. */
#ifndef DSPARK_DEVICE_H
#define DSPARK_DEVICE_H

#include "dspark/dspark.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when a table of an older number can no longer be used. */
#define DSPARK_DEVICE_ABI 1u

/* What the caller does next. */
typedef enum dspark_device_status {
  DSPARK_DEVICE_OK = 0,
  DSPARK_DEVICE_UNSUPPORTED = 1,   /* run it elsewhere */
  DSPARK_DEVICE_OUT_OF_MEMORY = 2, /* ask for less */
  DSPARK_DEVICE_FAULT = 3,         /* stop(), and run it elsewhere */
  DSPARK_DEVICE_TIMEOUT = 4        /* not done within the time given */
} dspark_device_status;

typedef struct dspark_device dspark_device;           /* an open device */
typedef struct dspark_device_call dspark_device_call; /* a step made ready */
typedef uint64_t dspark_device_memory;                /* 0: none */
typedef uint64_t dspark_device_ticket;

typedef struct dspark_device_facts {
  uint64_t memory;        /* bytes, more than 0 */
  uint64_t memory_left;   /* of them, not allocated; may change at any time */
  double copy_latency;    /* seconds of a copy of nothing */
  double copy_in_second;  /* bytes per second from the host */
  double copy_out_second; /* bytes per second to the host */
} dspark_device_facts;

/* At most one of ints, floats and text is set. */
typedef struct dspark_device_attribute {
  const char *name;
  const int64_t *ints;
  size_t int_count;
  const double *floats;
  size_t float_count;
  const char *text; /* not terminated */
  size_t text_length;
} dspark_device_attribute;

/* Dense and row-major; an absent operand has dtype DSPARK_NONE. Operands with attribute `packed` are in that
 * form (docs/packed-weights.md), and dims are the logical ones. */
typedef struct dspark_device_tensor {
  dspark_dtype dtype;
  int32_t rank;
  const int64_t *dims;
  uint64_t bytes;
  int32_t is_constant; /* a weight: its bytes are copied in before prepare() and never change */
  dspark_device_memory memory;
  uint64_t offset; /* in memory; a multiple of 64 */
} dspark_device_tensor;

/* One call of an operator of the catalogue (docs/operators.md, docs/plan-format.md), lent for the call. */
typedef struct dspark_device_step {
  const char *op;
  const dspark_device_attribute *attributes;
  size_t attribute_count;
  const dspark_device_tensor *inputs;
  size_t input_count;
  const dspark_device_tensor *outputs;
  size_t output_count;
  double flops; /* a multiply-add counts 2; 0 where only bytes matter */
  double bytes; /* read and written */
} dspark_device_step;

typedef struct dspark_device_api {
  uint32_t abi;       /* DSPARK_DEVICE_ABI */
  size_t struct_size; /* sizeof(dspark_device_api) */
  const char *kind;   /* for people: "npu stub" */

  /* `config` is a file or "". Errors write a sentence to `message`, terminated, of at most `size` bytes. */
  dspark_device_status (*open)(const char *config, dspark_device **device, char *message, size_t size);
  void (*close)(dspark_device *device);
  dspark_device_status (*facts)(dspark_device *device, dspark_device_facts *facts);

  /* Whether the device can run the step, and the seconds that it takes. The tensors need no memory.
   * UNSUPPORTED writes why to `reason`. */
  dspark_device_status (*estimate)(dspark_device *device, const dspark_device_step *step, double *seconds,
                                   char *reason, size_t size);

  dspark_device_status (*allocate)(dspark_device *device, uint64_t bytes, dspark_device_memory *memory);
  void (*release)(dspark_device *device, dspark_device_memory memory);

  /* Makes a step ready to be launched any number of times. `discard` not before its launches are done. */
  dspark_device_status (*prepare)(dspark_device *device, const dspark_device_step *step,
                                  dspark_device_call **call);
  void (*discard)(dspark_device *device, dspark_device_call *call);

  dspark_device_status (*copy_in)(dspark_device *device, dspark_device_memory to, uint64_t offset,
                                  const void *from, uint64_t bytes, dspark_device_ticket *ticket);
  dspark_device_status (*copy_out)(dspark_device *device, dspark_device_memory from, uint64_t offset,
                                   void *to, uint64_t bytes, dspark_device_ticket *ticket);
  dspark_device_status (*launch)(dspark_device *device, dspark_device_call *call,
                                 dspark_device_ticket *ticket);
  /* Until that command and all before it are done, at most `deadline` seconds. `seconds`, if not NULL, is
   * what the command took on the device; it is known for the last 65536 commands. */
  dspark_device_status (*wait)(dspark_device *device, dspark_device_ticket ticket, double deadline,
                               double *seconds);
  /* Forgets all commands that are not done, and errors. When it returns no host memory is touched any more.
   */
  void (*stop)(dspark_device *device);
} dspark_device_api;

/* The only symbol of a plug-in. NULL if it has no table for that number. The table lives as long as the
 * library. */
typedef const dspark_device_api *(*dspark_device_query_function)(uint32_t abi);
DSPARK_API const dspark_device_api *dspark_device_query(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif
