#include "tools/dspark-rt/OptionTexts.h"
#include <charconv>

namespace dspark {
namespace {

constexpr size_t kMaxSizes = 16; // of one dim

} // namespace

Status parseDims(const std::vector<std::string> &texts, std::map<std::string, int64_t> &dims,
                 const char *what) {
  for (const std::string &text : texts) {
    size_t equals = text.rfind('=');
    int64_t value = -1;
    const char *end = text.data() + text.size();
    if (equals == text.npos || equals == 0 ||
        std::from_chars(text.data() + equals + 1, end, value).ptr != end || value < 0)
      return invalidArgument(std::string(what) + " expects NAME=N with N >= 0, found '" + text + "'");
    dims[text.substr(0, equals)] = value;
  }
  return Status::ok();
}

Status parseDimSizes(const std::vector<std::string> &texts, std::map<std::string, std::vector<int64_t>> &dims,
                     const char *what) {
  for (const std::string &text : texts) {
    size_t equals = text.rfind('=');
    bool isRight = equals != text.npos && equals > 0;
    std::vector<int64_t> sizes;
    const char *end = text.data() + text.size();
    for (const char *at = text.data() + (isRight ? equals : text.size()); isRight && at != end;) {
      int64_t value = -1;
      std::from_chars_result read = std::from_chars(at + 1, end, value);
      isRight = read.ec == std::errc() && value >= 0 && (read.ptr == end || *read.ptr == ',') &&
                sizes.size() < kMaxSizes;
      sizes.push_back(value);
      at = read.ptr;
    }
    if (!isRight)
      return invalidArgument(std::string(what) + " expects NAME=N, or NAME=N,M,... with at most " +
                             std::to_string(kMaxSizes) + " sizes, each 0 or more; found '" + text + "'");
    dims[text.substr(0, equals)] = std::move(sizes);
  }
  return Status::ok();
}

Status parseDevices(const std::vector<std::string> &texts, std::vector<DeviceSpec> &devices) {
  for (const std::string &text : texts) {
    DSPARK_ASSIGN_OR_RETURN(DeviceSpec spec, DeviceSpec::parse(text));
    devices.push_back(std::move(spec));
  }
  return Status::ok();
}

} // namespace dspark
