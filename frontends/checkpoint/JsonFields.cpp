#include "frontends/checkpoint/JsonFields.h"
#include <cmath>

namespace dspark::checkpoint {
namespace {

constexpr int kDeepest = 64;

std::string shown(const Json &value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80);
}

} // namespace

StatusOr<Json> parseJsonObject(std::string_view text) {
  bool isTooDeep = false;
  Json root = Json::parse(
      text,
      [&](int depth, Json::parse_event_t, Json &) {
        isTooDeep |= depth > kDeepest;
        return !isTooDeep;
      },
      /*allow_exceptions=*/false);
  if (isTooDeep)
    return corruptFile("the JSON is nested more than " + std::to_string(kDeepest) + " deep");
  if (!root.is_object())
    return corruptFile("this is no JSON object");
  return root;
}

const Json *JsonFields::find(const char *key) const {
  auto found = json->find(key);
  return found == json->end() || found->is_null() ? nullptr : &*found;
}

bool JsonFields::isNull(const char *key) const {
  auto found = json->find(key);
  return found != json->end() && found->is_null();
}

void JsonFields::fail(const std::string &key, const std::string &found, const std::string &expected) const {
  if (status->isOk())
    *status = corruptFile(where + key + " is " + found + ", expected " + expected);
}

void JsonFields::refuse(const std::string &sentence) const {
  if (status->isOk())
    *status = {Code::Unsupported, where + sentence};
}

int64_t JsonFields::integer(const char *key, int64_t least, int64_t most,
                            std::optional<int64_t> otherwise) const {
  const Json *value = find(key);
  if (!value && otherwise)
    return *otherwise;
  if (value && value->is_number_unsigned() && value->get<uint64_t>() >= uint64_t(least) &&
      value->get<uint64_t>() <= uint64_t(most))
    return value->get<int64_t>();
  fail(key, value ? shown(*value) : "missing", std::to_string(least) + " to " + std::to_string(most));
  return least;
}

int64_t JsonFields::size(const char *key, int64_t most, std::optional<int64_t> otherwise) const {
  return integer(key, 1, most, otherwise);
}
int64_t JsonFields::sizeOrZero(const char *key, int64_t most, int64_t otherwise) const {
  return integer(key, 0, most, otherwise);
}

double JsonFields::number(const char *key, double otherwise) const {
  const Json *value = find(key);
  if (!value)
    return otherwise;
  if (value->is_number() && std::isfinite(value->get<double>()))
    return value->get<double>();
  fail(key, shown(*value), "a number");
  return otherwise;
}

double JsonFields::positive(const char *key, double otherwise) const {
  double found = number(key, otherwise);
  if (found > 0)
    return found;
  fail(key, std::to_string(found), "a number above 0");
  return 1;
}

double JsonFields::numberOrNone(const char *key, double otherwise) const {
  return isNull(key) ? 0 : number(key, otherwise);
}

bool JsonFields::boolean(const char *key, bool otherwise) const {
  const Json *value = find(key);
  if (value && !value->is_boolean())
    fail(key, shown(*value), "true or false");
  return value && value->is_boolean() ? value->get<bool>() : otherwise;
}

std::string JsonFields::string(const char *key, const std::string &otherwise) const {
  const Json *value = find(key);
  if (value && !value->is_string())
    fail(key, shown(*value), "a string");
  return value && value->is_string() ? value->get<std::string>() : otherwise;
}

std::vector<std::string> JsonFields::strings(const char *key) const {
  std::vector<std::string> list;
  const Json *value = find(key);
  for (const Json &element : value ? *value : Json::array())
    if (element.is_string())
      list.push_back(element.get<std::string>());
    else
      fail(key, shown(*value), "a list of strings");
  return list;
}

std::vector<double> JsonFields::numbers(const char *key) const {
  std::vector<double> list;
  const Json *value = find(key);
  for (const Json &element : value ? *value : Json::array())
    if (element.is_number() && std::isfinite(element.get<double>()))
      list.push_back(element.get<double>());
    else
      fail(key, shown(*value), "a list of numbers");
  return list;
}

const Json *JsonFields::object(const char *key) const {
  const Json *value = find(key);
  if (value && !value->is_object())
    fail(key, shown(*value), "an object");
  return value && value->is_object() ? value : nullptr;
}

} // namespace dspark::checkpoint
