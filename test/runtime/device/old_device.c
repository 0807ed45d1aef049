/* A plug-in of another version, for device_test.cpp. */
#include "dspark/device.h"

static const dspark_device_api api = {0, sizeof(dspark_device_api), "old"};

DSPARK_API const dspark_device_api *dspark_device_query(uint32_t abi) { return &api; }
