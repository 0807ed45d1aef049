#include "tools/dspark-rt/OptionTexts.h"
#include <charconv>

namespace dspark {

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

Status parseDevices(const std::vector<std::string> &texts, std::vector<DeviceSpec> &devices) {
  for (const std::string &text : texts) {
    DSPARK_ASSIGN_OR_RETURN(DeviceSpec spec, DeviceSpec::parse(text));
    devices.push_back(std::move(spec));
  }
  return Status::ok();
}

} // namespace dspark
