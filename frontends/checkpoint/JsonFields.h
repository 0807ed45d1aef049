// Checked reading of a JSON object's fields: numbers in their ranges, the first error kept with the key, the
// value found and what was expected. An absent field and null are the same unless said otherwise.
#pragma once
#include "runtime/base/Status.h"
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dspark::checkpoint {

using Json = nlohmann::json;

/// Errors: CorruptFile if the text is no JSON, is nested deeper than 64 or is no object.
StatusOr<Json> parseJsonObject(std::string_view text);

class JsonFields {
public:
  /// Errors go to `status`, unless it has one. `where` stands in front of keys.
  JsonFields(const Json &object, Status &status, std::string where = "")
      : json(&object), status(&status), where(std::move(where)) {}

  /// The fields of an object inside, with errors to the same place.
  JsonFields within(const Json &object, std::string name) const { return {object, *status, std::move(name)}; }

  bool has(const char *key) const { return find(key) != nullptr; }
  bool isNull(const char *key) const;
  void fail(const std::string &key, const std::string &found, const std::string &expected) const;
  /// Unsupported, with that sentence.
  void refuse(const std::string &sentence) const;

  /// 1 to `most`; required unless `otherwise` is given.
  int64_t size(const char *key, int64_t most, std::optional<int64_t> otherwise = {}) const;
  /// The same from 0 on.
  int64_t sizeOrZero(const char *key, int64_t most, int64_t otherwise) const;
  /// Finite; above 0.
  double number(const char *key, double otherwise) const;
  double positive(const char *key, double otherwise) const;
  /// `otherwise` if it is absent, 0 if it is null.
  double numberOrNone(const char *key, double otherwise) const;
  bool boolean(const char *key, bool otherwise) const;
  std::string string(const char *key, const std::string &otherwise) const;
  /// Empty if absent.
  std::vector<std::string> strings(const char *key) const;
  std::vector<double> numbers(const char *key) const;
  /// Null if absent or no object.
  const Json *object(const char *key) const;

private:
  const Json *find(const char *key) const;
  int64_t integer(const char *key, int64_t least, int64_t most, std::optional<int64_t> otherwise) const;

  const Json *json;
  Status *status;
  std::string where;
};

} // namespace dspark::checkpoint
