// The classes of characters that tokenizers tell apart, from the Unicode database by utf8proc.
#pragma once
#include <string>
#include <string_view>

namespace dspark::llm {

bool isWhiteSpace(char32_t c);
bool isControl(char32_t c); // categories Cc, Cf, Cn, Co, but not tab, line feed and carriage return
bool isPunctuation(
    char32_t c); // category P, and every ASCII character that is neither letter, digit, space nor control
bool isWordCharacter(char32_t c);
bool isNonspacingMark(char32_t c);
bool isMark(char32_t c);
bool isChineseCharacter(char32_t c); // the blocks that BERT's tokenizer sets apart
char32_t toLower(char32_t c);

enum class Form { Nfc, Nfd, Nfkc, Nfkd };
/// Unicode normalisation of valid UTF-8.
std::string normalize(std::string_view text, Form form);

} // namespace dspark::llm
