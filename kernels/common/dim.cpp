#include "kernels/common/dim.h"
#include <algorithm>

namespace dspark {

Dim::Dim(const DimNode *node) {
  if (node->op == DimOp::Const) {
    number = node->value;
    state = State::Number;
  } else {
    expr = node;
    state = State::Symbolic;
  }
}

std::optional<int64_t> evaluateDimOp(DimOp op, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (op) {
  case DimOp::Const:
  case DimOp::Symbol:
    return std::nullopt;
  case DimOp::Add:
    return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
  case DimOp::Mul:
    return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
  case DimOp::FloorDiv:
  case DimOp::CeilDiv:
  case DimOp::Mod: {
    if (b == 0 || (a == INT64_MIN && b == -1))
      return std::nullopt;
    int64_t quotient = a / b, rest = a % b;
    bool inexactNegative = rest != 0 && ((rest < 0) != (b < 0));
    if (op == DimOp::FloorDiv)
      return quotient - (inexactNegative ? 1 : 0);
    if (op == DimOp::CeilDiv)
      return quotient + (rest != 0 && !inexactNegative ? 1 : 0);
    return inexactNegative ? rest + b : rest;
  }
  case DimOp::Min:
    return std::min(a, b);
  case DimOp::Max:
    return std::max(a, b);
  case DimOp::Broadcast:
    return b == 1 ? a : b;
  }
  return std::nullopt;
}

namespace {

Dim combine(DimOp op, Dim a, Dim b) {
  if (a.isUnknown() || b.isUnknown())
    return Dim();
  if (a.isConst() && b.isConst()) {
    std::optional<int64_t> r = evaluateDimOp(op, a.value(), b.value());
    return r ? Dim(*r) : Dim();
  }
  DimTable *table = (a.isSymbolic() ? a : b).node()->table;
  return table->make(op, a, b);
}

bool isCommutative(DimOp op) {
  return op == DimOp::Add || op == DimOp::Mul || op == DimOp::Min || op == DimOp::Max;
}

// The order of terms and factors: symbols by their number, so that it does not change from run to run.
bool comesBefore(const DimNode *x, const DimNode *y) {
  return std::make_tuple(x->op, x->value, x) < std::make_tuple(y->op, y->value, y);
}

void print(const DimNode *node, const std::vector<std::string> &names, std::string &out) {
  auto infix = [&](const char *sign) {
    out += '(';
    print(node->lhs, names, out);
    out += sign;
    print(node->rhs, names, out);
    out += ')';
  };
  auto call = [&](const char *name) {
    out += name;
    out += '(';
    print(node->lhs, names, out);
    out += ", ";
    print(node->rhs, names, out);
    out += ')';
  };
  switch (node->op) {
  case DimOp::Const:
    out += std::to_string(node->value);
    return;
  case DimOp::Symbol:
    out += names[node->value];
    return;
  case DimOp::Add:
    return infix(" + ");
  case DimOp::Mul:
    return infix("*");
  case DimOp::FloorDiv:
    return call("floordiv");
  case DimOp::CeilDiv:
    return call("ceildiv");
  case DimOp::Mod:
    return call("mod");
  case DimOp::Min:
    return call("min");
  case DimOp::Max:
    return call("max");
  case DimOp::Broadcast:
    return call("broadcast");
  }
}

} // namespace

Dim operator+(Dim a, Dim b) { return combine(DimOp::Add, a, b); }
Dim operator-(Dim a, Dim b) { return combine(DimOp::Add, a, combine(DimOp::Mul, b, Dim(-1))); }
Dim operator*(Dim a, Dim b) { return combine(DimOp::Mul, a, b); }
Dim floorDiv(Dim a, Dim b) { return combine(DimOp::FloorDiv, a, b); }
Dim ceilDiv(Dim a, Dim b) { return combine(DimOp::CeilDiv, a, b); }
Dim mod(Dim a, Dim b) { return combine(DimOp::Mod, a, b); }
Dim min(Dim a, Dim b) { return combine(DimOp::Min, a, b); }
Dim max(Dim a, Dim b) { return combine(DimOp::Max, a, b); }

std::optional<Dim> broadcast(Dim a, Dim b) {
  if (a.is(1) || a.provablyEqual(b))
    return b;
  if (b.is(1))
    return a;
  if (a.isConst() && b.isConst())
    return std::nullopt;
  // A number other than 1 decides; the other side must be it or 1.
  if (a.isConst())
    return a;
  if (b.isConst())
    return b;
  return combine(DimOp::Broadcast, a, b);
}

std::string Dim::str() const {
  if (isUnknown())
    return "?";
  if (isConst())
    return std::to_string(number);
  std::string out;
  print(expr, expr->table->symbols(), out);
  if (out.front() == '(')
    out = out.substr(1, out.size() - 2);
  return out;
}

const DimNode *DimTable::intern(DimOp op, int64_t value, const DimNode *lhs, const DimNode *rhs) {
  auto [it, isNew] = interned.try_emplace({op, value, lhs, rhs}, nullptr);
  if (isNew) {
    nodes.push_back({op, value, lhs, rhs, this});
    it->second = &nodes.back();
  }
  return it->second;
}

const DimNode *DimTable::nodeOf(Dim dim) {
  return dim.isConst() ? intern(DimOp::Const, dim.value(), nullptr, nullptr) : dim.node();
}

Dim DimTable::symbol(std::string_view name) {
  auto [it, isNew] = symbolIndex.try_emplace(std::string(name), int64_t(names.size()));
  if (isNew)
    names.emplace_back(name);
  return Dim(intern(DimOp::Symbol, it->second, nullptr, nullptr));
}

Dim DimTable::freshSymbol(std::string_view prefix) {
  std::string name;
  for (size_t n = names.size();; ++n)
    if (name = std::string(prefix) + std::to_string(n); !symbolIndex.contains(name))
      return symbol(name);
}

// Whether the dim of operands `part` and `whole` is `whole` wherever they broadcast at all: `whole` is a
// broadcast that `part` took part in, or `part` is min(whole, c), which differs from `whole` only where
// neither is 1.
static bool broadcastsTo(Dim part, Dim whole) {
  if (!part.isSymbolic() || !whole.isSymbolic())
    return false;
  const DimNode *p = part.node(), *w = whole.node();
  if (w->op == DimOp::Broadcast && (w->lhs == p || w->rhs == p))
    return true;
  return p->op == DimOp::Min && p->lhs == w && p->rhs->op == DimOp::Const && p->rhs->value > 1;
}

// Keeps a canonical form that makes the common equal expressions identical: sums are flattened into sorted
// terms with integer coefficients, products into sorted factors, products by numbers distribute over sums,
// and identities vanish.
Dim DimTable::make(DimOp op, Dim a, Dim b) {
  if (a.isUnknown() || b.isUnknown())
    return Dim();
  if (a.isConst() && b.isConst()) {
    std::optional<int64_t> r = evaluateDimOp(op, a.value(), b.value());
    return r ? Dim(*r) : Dim();
  }
  if (isCommutative(op) && a.isConst())
    std::swap(a, b);

  if (op == DimOp::Add) {
    // Collect coefficient per term, in order of first use.
    std::vector<std::pair<const DimNode *, int64_t>> terms;
    int64_t constant = 0;
    bool fits = true;
    auto accumulate = [&](int64_t &sum, int64_t x) { fits = !__builtin_add_overflow(sum, x, &sum) && fits; };
    auto times = [&](int64_t x, int64_t y) {
      int64_t product = 0;
      fits = !__builtin_mul_overflow(x, y, &product) && fits;
      return product;
    };
    auto collect = [&](auto &&self, const DimNode *node, int64_t scale) -> void {
      if (node->op == DimOp::Const) {
        accumulate(constant, times(scale, node->value));
      } else if (node->op == DimOp::Add) {
        self(self, node->lhs, scale);
        self(self, node->rhs, scale);
      } else if (node->op == DimOp::Mul && node->rhs->op == DimOp::Const) {
        self(self, node->lhs, times(scale, node->rhs->value));
      } else {
        for (auto &term : terms)
          if (term.first == node)
            return accumulate(term.second, scale);
        terms.push_back({node, scale});
      }
    };
    collect(collect, nodeOf(a), 1);
    collect(collect, nodeOf(b), 1);
    if (!fits)
      return Dim();
    std::erase_if(terms, [](auto &term) { return term.second == 0; });
    std::sort(terms.begin(), terms.end(), [](auto &x, auto &y) { return comesBefore(x.first, y.first); });
    if (terms.empty())
      return Dim(constant);
    const DimNode *sum = nullptr;
    auto add = [&](const DimNode *term) { sum = sum ? intern(DimOp::Add, 0, sum, term) : term; };
    for (auto [term, scale] : terms)
      add(scale == 1 ? term : intern(DimOp::Mul, 0, term, nodeOf(Dim(scale))));
    if (constant != 0)
      add(nodeOf(Dim(constant)));
    return Dim(sum);
  }
  if (op == DimOp::Mul && b.isConst()) {
    if (b.is(0))
      return Dim(0);
    if (b.is(1))
      return a;
    const DimNode *node = a.node();
    if (node->op == DimOp::Add)
      return Dim(node->lhs) * b + Dim(node->rhs) * b;
    if (node->op == DimOp::Mul && node->rhs->op == DimOp::Const) // unknown where the numbers overflow
      return Dim(node->lhs) * (Dim(node->rhs->value) * b);
  }
  if (op == DimOp::Mul && !b.isConst()) {
    // Sorted factors, the number last.
    std::vector<const DimNode *> factors;
    Dim number(1);
    auto collect = [&](auto &&self, const DimNode *node) -> void {
      if (node->op == DimOp::Const) {
        number = number * Dim(node->value);
      } else if (node->op == DimOp::Mul) {
        self(self, node->lhs);
        self(self, node->rhs);
      } else {
        factors.push_back(node);
      }
    };
    collect(collect, a.node());
    collect(collect, b.node());
    std::sort(factors.begin(), factors.end(), comesBefore);
    const DimNode *product = factors[0];
    for (size_t i = 1; i < factors.size(); ++i)
      product = intern(DimOp::Mul, 0, product, factors[i]);
    return Dim(product) * number;
  }
  if ((op == DimOp::FloorDiv || op == DimOp::CeilDiv) && b.isConst()) {
    if (b.is(0))
      return Dim();
    if (b.is(1))
      return a;
    const DimNode *node = a.node();
    // (k*x) / k is x, and (k*m*x) / k is m*x.
    if (node->op == DimOp::Mul && node->rhs->op == DimOp::Const && node->rhs->value % b.value() == 0)
      return Dim(node->lhs) * Dim(node->rhs->value / b.value());
  }
  if ((op == DimOp::FloorDiv || op == DimOp::CeilDiv) && !b.isConst()) {
    if (a.provablyEqual(b))
      return Dim(1);
    // (x*y) / y is x.
    if (a.isSymbolic() && a.node()->op == DimOp::Mul) {
      if (a.node()->rhs == b.node())
        return Dim(a.node()->lhs);
      if (a.node()->lhs == b.node())
        return Dim(a.node()->rhs);
    }
    // (k*y) / y is k, with y itself a product by a number: (k*x) / (m*x).
    if (a.isSymbolic() && a.node()->op == DimOp::Mul && b.node()->op == DimOp::Mul &&
        a.node()->lhs == b.node()->lhs && a.node()->rhs->op == DimOp::Const &&
        b.node()->rhs->op == DimOp::Const && a.node()->rhs->value % b.node()->rhs->value == 0)
      return Dim(a.node()->rhs->value / b.node()->rhs->value);
  }
  if (op == DimOp::Mod && (b.is(1) || a.provablyEqual(b)))
    return Dim(0);
  if ((op == DimOp::Min || op == DimOp::Max || op == DimOp::Broadcast) && a.provablyEqual(b))
    return a;
  // A symbol is never negative and far below the "to the end" markers that slices use.
  if (op == DimOp::Min && b.isConst() && b.value() >= (int64_t(1) << 40) && a.node()->op == DimOp::Symbol)
    return a;
  if (op == DimOp::Max && b.isConst() && b.value() <= 0 && a.node()->op == DimOp::Symbol)
    return a;
  if (op == DimOp::Broadcast) {
    if (broadcastsTo(a, b))
      return b;
    if (broadcastsTo(b, a))
      return a;
  }
  const DimNode *lhs = nodeOf(a), *rhs = nodeOf(b);
  if (isCommutative(op) && !b.isConst() && rhs < lhs)
    std::swap(lhs, rhs);
  return Dim(intern(op, 0, lhs, rhs));
}

} // namespace dspark
