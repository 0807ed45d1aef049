/* Runs a plan once on inputs of ones: the C API from end to end.
 *
 *   cc -std=c11 -Iinclude examples/run_plan.c -Lbuild/release/lib -ldspark -o run_plan && ./run_plan
 * model.dsp */
#include <dspark/dspark.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TENSORS = 64, MAX_RANK = 12 };

static int fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, dspark_last_error());
  return 1;
}

/* Memory for an input of the declared type and shape, symbolic dims as 1. Only f32 and i64, for brevity. */
static int make_input(const dspark_tensor_info *info, int64_t *dims, dspark_tensor *tensor) {
  size_t count = 1;
  for (int32_t i = 0; i < info->rank; ++i) {
    dims[i] = info->dims[i] < 0 ? 1 : info->dims[i];
    count *= (size_t)dims[i];
  }
  tensor->dtype = info->dtype;
  tensor->rank = info->rank;
  tensor->dims = dims;
  tensor->strides = NULL;
  tensor->data = NULL;
  if (info->dtype == DSPARK_F32 && (tensor->data = calloc(count + 1, sizeof(float))))
    for (size_t i = 0; i < count; ++i)
      ((float *)tensor->data)[i] = 1.0f;
  if (info->dtype == DSPARK_I64 && (tensor->data = calloc(count + 1, sizeof(int64_t))))
    for (size_t i = 0; i < count; ++i)
      ((int64_t *)tensor->data)[i] = 1;
  return tensor->data != NULL;
}

static void print_output(const char *name, const dspark_tensor *tensor) {
  size_t count = 1;
  printf("%s: [", name);
  for (int32_t i = 0; i < tensor->rank; ++i) {
    printf("%s%" PRId64, i ? ", " : "", tensor->dims[i]);
    count *= (size_t)tensor->dims[i];
  }
  printf("]");
  if (tensor->dtype == DSPARK_F32)
    for (size_t i = 0; i < count && i < 5; ++i)
      printf(" %g", (double)((const float *)tensor->data)[i]);
  printf("\n");
}

static int run(const dspark_plan *plan, dspark_session *session) {
  static dspark_tensor inputs[MAX_TENSORS];
  static int64_t dims[MAX_TENSORS][MAX_RANK];
  size_t made = 0, count = dspark_plan_input_count(plan);
  int result = 0;
  for (; made < count && made < MAX_TENSORS; ++made) {
    dspark_tensor_info info;
    if (dspark_plan_input(plan, made, &info) != DSPARK_OK || !make_input(&info, dims[made], &inputs[made])) {
      fprintf(stderr, "input %zu is of a type this example does not make\n", made);
      result = 1;
      break;
    }
  }
  if (result == 0 && dspark_session_run(session, inputs, count, NULL, 0) != DSPARK_OK)
    result = fail("run");
  for (size_t i = 0; result == 0 && i < dspark_plan_output_count(plan); ++i) {
    dspark_tensor_info info;
    dspark_tensor output;
    if (dspark_plan_output(plan, i, &info) != DSPARK_OK ||
        dspark_session_output(session, i, &output) != DSPARK_OK)
      result = fail("output");
    else
      print_output(info.name, &output);
  }
  for (size_t i = 0; i < made; ++i)
    free(inputs[i].data);
  return result;
}

int main(int argc, char **argv) {
  dspark_plan *plan = NULL;
  dspark_session *session = NULL;
  dspark_session_options options;
  int result;
  if (argc != 2) {
    fprintf(stderr, "usage: run_plan PLAN\n");
    return 1;
  }
  if (dspark_plan_open(argv[1], &plan) != DSPARK_OK)
    return fail("open");
  dspark_session_options_init(&options);
  options.threads = 1;
  if (dspark_session_create(plan, &options, &session) != DSPARK_OK) {
    result = fail("session");
  } else {
    result = run(plan, session);
  }
  dspark_session_destroy(session);
  dspark_plan_close(plan);
  return result;
}
