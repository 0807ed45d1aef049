// Options that several tools share.
#pragma once
#include "runtime/device/DeviceLibrary.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dspark {

/// "NAME=N" pairs of --dim; InvalidArgument for others, naming the option `what`.
Status parseDims(const std::vector<std::string> &texts, std::map<std::string, int64_t> &dims,
                 const char *what = "--dim");
/// "NAME=N" or "NAME=N,M,..." with at most 16 sizes.
Status parseDimSizes(const std::vector<std::string> &texts, std::map<std::string, std::vector<int64_t>> &dims,
                     const char *what);
/// The texts of --device.
Status parseDevices(const std::vector<std::string> &texts, std::vector<DeviceSpec> &devices);

} // namespace dspark
