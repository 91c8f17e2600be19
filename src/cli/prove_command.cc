#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "app/keys.h"
#include "app/options.h"
#include "base/json.h"
#include "base/private_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "client/archive/chat_reader.h"
#include "client/archive/proof_leaves.h"
#include "crypto/proof.h"
#include "crypto/time_stamp.h"
#include "terminal/console.h"

namespace reprise {
namespace {

constexpr std::size_t kMostBytes = std::size_t{512} << 20;  // of a bundle
constexpr std::size_t kMostOfStamp = std::size_t{1} << 20;

std::string LeavesText(std::size_t leaves) { return Grouped(leaves) + (leaves == 1 ? " leaf" : " leaves"); }

Result<Proof> Load(const std::string& path) {
  auto proof = ReadProof(TRY(ReadSmallFile(path, kMostBytes)));
  if (!proof) proof.error().message = path + ": " + proof.error().message;
  return proof;
}

// Leaves out what the command line says, and writes the bundle.
Exited Finish(Proof proof, const CommandLine& line) {
  std::set<std::size_t> leaves;
  for (const std::string& selector : line.proof.without) leaves.merge(TRY(OfUse(SelectLeaves(proof, selector))));
  const std::size_t left_out = LeaveOut(proof, leaves);
  TRY(CheckProof(proof));
  if (!line.proof.timestamp_request.empty()) {
    TRY(WriteOutputFile(line.proof.timestamp_request, TimeStampQuery(StampedDigest(proof)), line.force));
  }
  if (line.output.empty()) {
    Print(WriteProof(proof));
    return kExitOk;
  }
  TRY(WriteOutputFile(line.output, WriteProof(proof), line.force));
  Print(LeavesText(proof.leaves.size()) + ", " + std::to_string(left_out) + " of them left out, in " +
        VisibleLine(line.output) + "\n");
  return kExitOk;
}

Exited ShowKey(const SigningKey& key, bool json) {
  const std::string digits = DigitsOf(key.public_key()), fingerprint = FingerprintOf(key.public_key());
  return PrintEither(json, {{"key", digits}, {"fingerprint", fingerprint}},
                     "key          " + digits + "\nfingerprint  " + fingerprint + "\n");
}

// --- a bundle of somebody's ------------------------------------------------------------------------------------------

// A leaf for a list: what it is, and as much of it as fits a line.
std::string ShownLeaf(const Proof::Leaf& leaf, std::size_t number) {
  constexpr std::size_t kMost = 100;
  const std::string text = leaf.is_left_out() ? "left out" : VisibleLine(leaf.text);
  const std::string_view start = Utf8Prefix(text, kMost);
  return std::to_string(number) + "  " + std::string(start) + (start.size() < text.size() ? "..." : "") + "\n";
}

struct Checked {
  ProofStatement statement;
  std::string fingerprint, stamped;  // `stamped` is empty unless an authority vouches for it
  std::size_t left_out = 0;
};

Result<Checked> Check(const Proof& proof, const ProofRequest& request) {
  Checked checked{.statement = TRY(CheckProof(proof)), .fingerprint = {}, .stamped = {}};
  checked.fingerprint = FingerprintOf(BytesOf(checked.statement.key));
  const std::string& wanted = request.signed_by;
  if (!wanted.empty() && wanted != checked.fingerprint && wanted != checked.statement.key) {
    return Fail(ErrorCode::kCorruption, "the key that signed it is another one: " + checked.fingerprint);
  }
  if (!request.timestamp_ca.empty()) {
    if (proof.time_stamp.empty()) return Fail(ErrorCode::kCorruption, "the bundle has no time stamp");
    checked.stamped = TRY(TimeOfStamp(BytesOf(proof.time_stamp), StampedDigest(proof), request.timestamp_ca));
  }
  checked.left_out = static_cast<std::size_t>(std::ranges::count_if(proof.leaves, &Proof::Leaf::is_left_out));
  return checked;
}

std::string AboutStamp(const Proof& proof, const Checked& checked) {
  if (!checked.stamped.empty()) return "not later than " + checked.stamped;
  return proof.time_stamp.empty() ? "none" : "not checked (--timestamp-ca FILE checks who made it)";
}

void ShowChecked(const Proof& proof, const Checked& checked, const ProofRequest& request) {
  const ProofStatement& statement = checked.statement;
  Print("intact: " + LeavesText(statement.leaves) + ", " + std::to_string(checked.left_out) + " of them left out\n" +
        "signed by    " + checked.fingerprint +
        (request.signed_by.empty() ? "  (ask its owner whether it is theirs)\n" : "\n") + "it says      made at " +
        VisibleLine(statement.made_at) + " by " + VisibleLine(statement.program) + "\n" + "time stamp   " +
        AboutStamp(proof, checked) + "\n");
}

Exited RunCheck(const CommandLine& line) {
  const auto proof = Load(line.proof.check);
  if (!proof && proof.error().code != ErrorCode::kCorruption) return Fail(proof.error());
  const auto checked = proof ? Check(*proof, line.proof) : Fail(proof.error());
  if (!checked && checked.error().code != ErrorCode::kCorruption) return Fail(checked.error());
  if (line.json) {
    Json report = {{"ok", checked.has_value()}};
    if (!checked) report["problem"] = checked.error().message;
    if (checked) {
      report["leaves"] = checked->statement.leaves;
      report["left_out"] = checked->left_out;
      report["key"] = checked->statement.key;
      report["fingerprint"] = checked->fingerprint;
      report["made_at"] = checked->statement.made_at;
      report["program"] = checked->statement.program;
      report["time_stamp"] = checked->stamped.empty() ? Json() : Json(checked->stamped);
    }
    PrintDocument(report);
    return checked ? kExitOk : kExitFailure;
  }
  if (!checked) return Fail(checked.error());
  if (line.list) {
    for (std::size_t i = 0; i < proof->leaves.size(); ++i) Print(ShownLeaf(proof->leaves[i], i + 1));
  }
  ShowChecked(*proof, *checked, line.proof);
  return kExitOk;
}

Exited RunStamp(const CommandLine& line) {
  Proof proof = TRY(Load(line.proof.stamp));
  if (!line.proof.timestamp.empty()) {
    const std::string reply = TRY(ReadSmallFile(line.proof.timestamp, kMostOfStamp));
    TRY(TimeOfStamp(reply, StampedDigest(proof), line.proof.timestamp_ca));
    proof.time_stamp = DigitsOf(reply);
  }
  return Finish(std::move(proof), line);
}

// --- a chat of ours --------------------------------------------------------------------------------------------------

// Says by which grants calls ran whose approval is no leaf: it was given in another turn or chat.
void WarnOfGrants(const Proof& proof) {
  bool is_granted = false;
  std::set<std::string> grants;
  for (const Proof::Leaf& leaf : proof.leaves) {
    const Json json = ParseJson(leaf.text, 2 * kMaxJsonDepth).value_or(Json());
    const std::string kind = TextMember(json, "kind"), scope = TextMember(MemberOf(json, "event"), "scope");
    is_granted = is_granted || (kind == "approved" && !scope.empty() && scope != "once");
    if (kind != "permission" || !TextMember(json, "reason").ends_with("grant")) continue;
    for (const Json& each : MemberOf(json, "decided_by")) grants.insert(each.get<std::string>());
  }
  if (grants.empty() || is_granted) return;
  std::string names;
  for (const std::string& grant : grants) names += (names.empty() ? "" : ", ") + grant;
  Warn("who gave " + names + ", by which calls ran, is in no leaf: the approval is in another turn or chat");
}

Exited RunMake(const CommandLine& line, const Environment& environment) {
  auto reader = TRY(OfUse(ChatReader::Open(line.flags, environment)));
  const RecordReference what = TRY(OfUse(FindRecord(line.argument, reader.names())));
  auto chat = reader.store().LoadChat(what.chat);
  if (!chat) return Fail(NotThere(chat.error(), what, reader.options().data_dir));
  const std::set<InteractionId> branch = HeadBranch(*chat);
  std::erase_if(chat->interactions, [&](const Interaction& one) {
    return what.interaction ? one.id != *what.interaction : !branch.contains(one.id);
  });
  const bool is_damaged = std::ranges::any_of(chat->damaged, [&](const DamagedInteraction& one) {
    return what.interaction ? one.id == *what.interaction : true;
  });
  if (is_damaged) return Fail(ChatIsDamaged(what.chat));
  if (chat->interactions.empty()) {
    return Fail(NotThere(MakeError(ErrorCode::kNotFound, "there is no such turn"), what, reader.options().data_dir));
  }
  Proof proof = ProveChat(*chat, reader, TRY(ProofKeyOf(reader.options())));
  WarnOfGrants(proof);
  return Finish(std::move(proof), line);
}

}  // namespace

Exited RunProve(const CommandLine& line, const Environment& environment) {
  const ProofRequest& request = line.proof;
  const int modes = (line.argument.empty() ? 0 : 1) + (request.check.empty() ? 0 : 1) +
                    (request.redact.empty() ? 0 : 1) + (request.stamp.empty() ? 0 : 1) + (request.key ? 1 : 0);
  if (modes != 1) return Misused("prove takes one of CHAT, --check, --redact, --stamp and --key");
  const bool writes = !request.without.empty() || !line.output.empty() || !request.timestamp_request.empty();
  if (writes && (request.key || !request.check.empty())) {
    return Misused("--check and --key write nothing: they take no --without, --output and --timestamp-request");
  }
  if (!request.timestamp_ca.empty() && request.check.empty() && request.timestamp.empty()) {
    return Misused("--timestamp-ca needs --check or --timestamp");
  }
  if (request.key) {
    const Options options = TRY(OfUse(LoadOptions(line.flags, environment)));
    return ShowKey(TRY(ProofKeyOf(options)), line.json);
  }
  if (!request.check.empty()) return RunCheck(line);
  if (!request.stamp.empty()) return RunStamp(line);
  if (request.redact.empty()) return RunMake(line, environment);
  if (request.without.empty()) return Misused("--redact needs the leaves to leave out (--without)");
  return Finish(TRY(Load(request.redact)), line);
}

}  // namespace reprise
