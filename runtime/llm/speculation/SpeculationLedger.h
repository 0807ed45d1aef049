// Keeps speculation from ever costing more than a small share of the time: balances of what it gained and
// lost against plain decoding.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace dspark::llm {

/// All in steps of plain decoding. A balance grows by a share of all work, by what speculation gains, and
/// falls by what it loses; below 0 speculation is parked until it has grown back to kResume. So n tokens take
/// at most the time of (1 + share) n plain steps, and what it began with and one step's loss more.
///
/// Each doubling of the sequences side by side has a balance of its own: what a drafter gains while one
/// sequence decodes pays for no loss beside sixteen, whose steps are longer and whose drafts are dearer. It
/// begins with the steps that give 4 tokens (but one at least), as a step beside others tells more, and holds
/// four times that: gains of long ago pay for no more.
class SpeculationLedger {
public:
  explicit SpeculationLedger(double share) : share(share) {
    for (size_t i = 0; i < accounts.size(); ++i) {
      accounts[i].balance = std::max(kStart / double(size_t(1) << i), 1.0);
      accounts[i].most = kMost * accounts[i].balance;
    }
  }

  /// A step gave what `worth` plain steps give, in the time of `spent`. Plain steps are their own measure:
  /// worth = spent.
  void record(size_t sequences, double worth, double spent) {
    Account &account = accounts[indexOf(sequences)];
    account.balance = std::min(account.balance + share * worth + worth - spent, account.most);
    account.isParked = account.balance < (account.isParked ? kResume : 0);
  }

  bool parked(size_t sequences) const { return accounts[indexOf(sequences)].isParked; }
  bool affords(size_t sequences, double loss) const {
    const Account &account = accounts[indexOf(sequences)];
    return !account.isParked && account.balance >= loss;
  }

private:
  static constexpr double kStart = 4, kResume = 1, kMost = 4;

  struct Account {
    double balance = 0, most = 0;
    bool isParked = false;
  };
  static size_t indexOf(size_t sequences) {
    return std::min<size_t>(size_t(std::bit_width(std::max<size_t>(sequences, 1))), kAccounts) - 1;
  }

  static constexpr size_t kAccounts = 9; // the last: of 256 sequences and more
  double share;
  std::array<Account, kAccounts> accounts;
};

} // namespace dspark::llm
