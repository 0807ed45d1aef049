// One tensor dimension: a number, or an expression over symbols such as `batch` or `2*seq+1`.
//
// Shape functions are written once on Dim. The runtime only ever passes numbers; the compiler passes
// expressions that a DimTable owns and interns, so that equal expressions are the same node.
#pragma once
#include <concepts>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace dspark {

class DimTable;

enum class DimOp : uint8_t {
  Const,
  Symbol,
  Add,
  Mul,
  FloorDiv, // rounds towards minus infinity; the divisor is positive
  CeilDiv,
  Mod, // result has the divisor's sign
  Min,
  Max,
  Broadcast, // the dim of two broadcast operands: a where b is 1, else b
};

struct DimNode {
  DimOp op;
  int64_t value;      // Const: the number; Symbol: index into the table's symbols
  const DimNode *lhs; // null for Const and Symbol
  const DimNode *rhs;
  DimTable *table; // the owner
};

class Dim {
public:
  constexpr Dim() = default; // unknown: only known when the kernel has run
  template <std::integral T> constexpr Dim(T value) : number(int64_t(value)), state(State::Number) {}
  explicit Dim(const DimNode *node);

  bool isUnknown() const { return state == State::Unknown; }
  bool isConst() const { return state == State::Number; }
  bool isSymbolic() const { return state == State::Symbolic; }
  /// The number; only for isConst().
  int64_t value() const { return number; }
  /// The expression; only for isSymbolic().
  const DimNode *node() const { return expr; }
  bool is(int64_t value) const { return isConst() && number == value; }

  /// The same value for certain (same number, or same interned expression).
  bool provablyEqual(Dim other) const {
    return state == other.state && !isUnknown() && number == other.number && expr == other.expr;
  }
  std::string str() const;

private:
  enum class State : uint8_t { Unknown, Number, Symbolic };
  int64_t number = 0;
  const DimNode *expr = nullptr;
  State state = State::Unknown;
};

Dim operator+(Dim a, Dim b);
Dim operator-(Dim a, Dim b);
Dim operator*(Dim a, Dim b);
/// Rounding towards minus infinity; unknown if b is the number 0.
Dim floorDiv(Dim a, Dim b);
Dim ceilDiv(Dim a, Dim b);
Dim mod(Dim a, Dim b);
Dim min(Dim a, Dim b);
Dim max(Dim a, Dim b);
/// The dim of two broadcast operands. Numbers that do not fit give nullopt.
std::optional<Dim> broadcast(Dim a, Dim b);

/// Owns symbols and interned expressions; compile time only. Not thread-safe.
class DimTable {
public:
  /// The symbol of that name, made if new. Symbols stand for numbers >= 0.
  Dim symbol(std::string_view name);
  /// A new symbol that no input binds, named `prefix` and a number.
  Dim freshSymbol(std::string_view prefix);
  const std::vector<std::string> &symbols() const { return names; }
  /// Reads what Dim::str() prints (sums, products, floordiv(a, b) ...); nullopt if it does not parse. New names become
  /// symbols.
  std::optional<Dim> parse(std::string_view text);
  Dim make(DimOp op, Dim a, Dim b);

private:
  const DimNode *intern(DimOp op, int64_t value, const DimNode *lhs, const DimNode *rhs);
  const DimNode *nodeOf(Dim dim);
  std::deque<DimNode> nodes;
  std::map<std::tuple<DimOp, int64_t, const DimNode *, const DimNode *>, const DimNode *> interned;
  std::map<std::string, int64_t, std::less<>> symbolIndex;
  std::vector<std::string> names;
};

/// Arithmetic of one node on numbers; nullopt on division by zero or overflow.
std::optional<int64_t> evaluateDimOp(DimOp op, int64_t a, int64_t b);

} // namespace dspark
