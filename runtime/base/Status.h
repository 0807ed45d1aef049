// Errors of the runtime: a code that tells the caller what to do next, and a sentence that names the thing,
// the value found and the limit.
#pragma once
#include <string>
#include <utility>
#include <variant>

namespace dspark {

enum class Code {
  Ok = 0,
  InvalidArgument, // the call or an input is wrong: fix it
  NotFound,        // a file or name does not exist
  IoError,         // reading or writing failed: retry or check the disk
  CorruptFile,     // the file breaks its format's rules: compile it again
  Version,         // the file needs a newer runtime
  Unsupported,     // the model or machine lacks something: use another plan or device
  OutOfMemory,     // give it more memory or a smaller input
  Mismatch,        // a result differs from what was expected
  Internal,        // a bug of ours
  Busy,            // too much to do already: try again later
};

class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Code code, std::string message) : errorCode(code), text(std::move(message)) {}
  static Status ok() { return {}; }

  bool isOk() const { return errorCode == Code::Ok; }
  Code code() const { return errorCode; }
  const std::string &message() const { return text; }
  /// The same error with "where: " in front, for callers that know the file or node.
  Status in(const std::string &where) const {
    return isOk() ? *this : Status(errorCode, where + ": " + text);
  }

private:
  Code errorCode = Code::Ok;
  std::string text;
};

inline Status invalidArgument(std::string message) { return {Code::InvalidArgument, std::move(message)}; }
inline Status corruptFile(std::string message) { return {Code::CorruptFile, std::move(message)}; }

template <typename T> class [[nodiscard]] StatusOr {
public:
  StatusOr(T value) : content(std::move(value)) {}
  StatusOr(Status status) : content(std::move(status)) {}
  bool isOk() const { return std::holds_alternative<T>(content); }
  Status status() const { return isOk() ? Status() : std::get<Status>(content); }
  T &operator*() { return std::get<T>(content); }
  const T &operator*() const { return std::get<T>(content); }
  T *operator->() { return &std::get<T>(content); }
  const T *operator->() const { return &std::get<T>(content); }

private:
  std::variant<T, Status> content;
};

/// Returns from the enclosing function if `expr` is an error.
#define DSPARK_RETURN_IF_ERROR(expr)                                                                         \
  do {                                                                                                       \
    if (::dspark::Status dspark_status_ = (expr); !dspark_status_.isOk())                                    \
      return dspark_status_;                                                                                 \
  } while (false)

#define DSPARK_CONCAT_(a, b) a##b
#define DSPARK_CONCAT(a, b) DSPARK_CONCAT_(a, b)
/// Declares `variable` and moves the value of `expr` into it, or returns its error from the enclosing
/// function.
#define DSPARK_ASSIGN_OR_RETURN(variable, expr)                                                              \
  auto DSPARK_CONCAT(dspark_or_, __LINE__) = (expr);                                                         \
  if (!DSPARK_CONCAT(dspark_or_, __LINE__).isOk())                                                           \
    return DSPARK_CONCAT(dspark_or_, __LINE__).status();                                                     \
  variable = std::move(*DSPARK_CONCAT(dspark_or_, __LINE__))

} // namespace dspark
