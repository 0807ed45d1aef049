// The little language of OpRow::attributes: "axis:i perm:I! gamma>beta:f".
#pragma once
#include <string_view>

namespace dspark::onnx {

struct AttributeSpec {
  std::string_view name;   // in the model
  std::string_view passed; // in the catalogue; empty: not passed on
  char type = 0;           // i f s t g p y, capitals for lists; 0 if not given
  bool required = false;
};

/// Takes the first word off `words`; false at the end.
inline bool nextSpec(std::string_view &words, AttributeSpec &spec) {
  words.remove_prefix(std::min(words.find_first_not_of(' '), words.size()));
  if (words.empty())
    return false;
  std::string_view word = words.substr(0, words.find(' '));
  words.remove_prefix(word.size());
  spec = {};
  spec.required = word.ends_with('!');
  if (spec.required)
    word.remove_suffix(1);
  if (size_t colon = word.find(':'); colon != word.npos) {
    spec.type = word[colon + 1];
    word = word.substr(0, colon);
  }
  size_t arrow = word.find('>');
  spec.name = word.substr(0, arrow);
  spec.passed = arrow == word.npos ? word : word.substr(arrow + 1);
  return true;
}

} // namespace dspark::onnx
