/* What a benchmark or test in the same process may ask of the stub beyond include/dspark/device.h. */
#ifndef DSPARK_STUB_CONTROL_H
#define DSPARK_STUB_CONTROL_H

#include "dspark/dspark.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What goes wrong from now on with all open stubs: the list `faults` of a configuration (docs/devices.md) as
 * JSON, launches counted from now. Returns 0, or -1 if it is no such list; then nothing changes. */
DSPARK_API int dspark_stub_set_faults(const char *faults);

/* Seconds that the commands of all open stubs have taken so far, as they said. */
DSPARK_API double dspark_stub_seconds(void);

#ifdef __cplusplus
}
#endif
#endif
