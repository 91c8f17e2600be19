#include "client/archive/proof_leaves.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <variant>

#include "app/embedded.h"
#include "base/json.h"
#include "base/text.h"
#include "domain/audit_reading.h"
#include "domain/codec.h"
#include "reprise/event.h"
#include "store/audit_file.h"

namespace reprise {
namespace {

// The leaves of one turn. All but its first and last ones are in the order of their times.
class TurnLeaves {
 public:
  TurnLeaves(const Interaction& turn, std::vector<Json> permissions) : turn_(turn) {
    for (Json& each : permissions) later_.emplace_back(TextMember(each, "at"), std::move(each));
    AddRequests();
    std::ranges::stable_sort(later_, {}, &Timed::first);
  }

  std::vector<std::string> Take() && {
    Json begin = Leaf("turn");
    begin["parent"] = turn_.parent_id ? Json(turn_.parent_id->str()) : Json();
    begin["model"] = turn_.model;
    begin["at"] = FormatTimestamp(turn_.created_at);
    if (turn_.imported) begin["imported"] = true;
    if (turn_.record && turn_.record->what_if) {
      begin["what_if"] = {{"event", *turn_.record->what_if}};
      if (turn_.edited_from) begin["what_if"]["turn"] = turn_.edited_from->str();
    }
    Add(begin);
    if (!turn_.user_message.empty() || !turn_.attachments.empty()) {
      Json said = Leaf("said");
      said["text"] = turn_.user_message;
      if (!turn_.attachments.empty()) said["files"] = ToJson(turn_.attachments);
      Add(said);
    }
    for (const AgentEvent& event : turn_.events) {
      AddUntil(FormatTimestamp(event.at));
      AddEvent(event);
    }
    AddUntil({});
    Json end = Leaf("end");
    end["status"] = ToString(turn_.status);
    end["at"] = turn_.completed_at ? Json(FormatTimestamp(*turn_.completed_at)) : Json();
    if (turn_.error) end["error"] = {{"code", turn_.error->code}, {"message", turn_.error->message}};
    Add(end);
    return std::move(leaves_);
  }

 private:
  using Timed = std::pair<std::string, Json>;

  Json Leaf(std::string_view kind) const { return {{"kind", kind}, {"turn", turn_.id.str()}}; }
  void Add(const Json& leaf) { leaves_.push_back(DumpJson(leaf)); }
  void AddUntil(const std::string& time) {
    for (; next_ < later_.size() && (time.empty() || later_[next_].first <= time); ++next_) Add(later_[next_].second);
  }

  void AddRequests() {
    if (!turn_.record || !turn_.record->requests) return;
    std::size_t number = 0;
    for (const SentRequest& sent : *turn_.record->requests) {
      Json request = Leaf("request");
      request["number"] = number;
      request["round"] = sent.round;
      request["purpose"] = ToString(sent.purpose);
      request["at"] = FormatTimestamp(sent.at);
      request["model"] = sent.model;
      request["address"] = sent.address;
      if (!sent.call_id.empty()) request["call_id"] = sent.call_id;
      if (sent.response) request["response"] = ToJson(*sent.response, sent.model);
      Json body = Leaf("body");
      body["number"] = number++;
      body["digest"] = sent.body.digest;
      body["bytes"] = sent.body.bytes;
      later_.emplace_back(FormatTimestamp(sent.at), std::move(request));
      later_.emplace_back(FormatTimestamp(sent.at), std::move(body));
    }
  }

  void AddEvent(const AgentEvent& event) {
    Json leaf = Leaf(EventName(event.payload));
    leaf["event"] = ToJson(event);
    const bool is_approval = std::holds_alternative<event::Approved>(event.payload);
    if (!is_approval) return Add(leaf);
    // The digest is a leaf of its own, because it can go while who allowed the call stays.
    Json digest = Leaf("digest");
    for (const char* name : {"seq", "approval_id", "call_id", "arguments_digest"}) digest[name] = leaf["event"][name];
    leaf["event"].erase("arguments_digest");
    Add(leaf);
    Add(digest);
  }

  const Interaction& turn_;
  std::vector<Timed> later_;
  std::size_t next_ = 0;
  std::vector<std::string> leaves_;
};

using Permissions = std::map<std::string, std::vector<Json>>;  // by turn

Permissions PermissionsOf(const Chat& chat, const AuditLog& log) {
  std::set<std::string> turns;
  for (const Interaction& turn : chat.interactions) {
    if (!turn.imported) turns.insert(turn.id.str());
  }
  Permissions permissions;
  static_cast<void>(ReadAuditLines(log, [&](const Json& line) {
    const std::string turn = TextMember(line, "interaction_id"), reason = TextMember(line, "reason");
    if (TextMember(line, "event") != "started" || TextMember(line, "chat_id") != chat.summary.id.str() ||
        reason == "approval" || !turns.contains(turn)) {
      return true;
    }
    Json leaf = {{"kind", "permission"}, {"turn", turn}};
    for (const char* name : {"call_id", "tool_name", "reason", "decided_by", "at"}) {
      if (line.contains(name)) leaf[name] = line[name];
    }
    permissions[turn].push_back(std::move(leaf));
    return true;
  }));
  return permissions;
}

// What leaving out goes by.
struct Named {
  std::string kind, turn, call;
};
Named NameOf(const Proof::Leaf& leaf) {
  const auto json = leaf.is_left_out() ? Json() : ParseJson(leaf.text, 2 * kMaxJsonDepth).value_or(Json());
  Named named{TextMember(json, "kind"), TextMember(json, "turn"), TextMember(json, "call_id")};
  const Json& event = MemberOf(json, "event");
  if (named.call.empty()) named.call = TextMember(event, "call_id");
  const bool is_call = named.kind == "tool_call" || named.kind == "tool_result";
  if (named.call.empty() && is_call) named.call = TextMember(event, "id");
  return named;
}

// Digests of what calls of any turn have written, or of their arguments, which are also in the ids of grants.
bool HasDigestsOfAllTurns(const std::string& kind) { return kind == "files_changed" || kind == "grants_updated"; }
bool HasDigests(const std::string& kind) { return kind == "body" || kind == "digest" || HasDigestsOfAllTurns(kind); }
// Whether digests in the turn may be of something in it.
bool ConcernsCall(const Named& leaf) { return !leaf.call.empty() || HasDigestsOfAllTurns(leaf.kind); }

}  // namespace

std::vector<std::string> ProofLeavesOf(const Chat& chat, const AuditLog& log) {
  Permissions permissions = PermissionsOf(chat, log);
  std::vector<std::string> leaves{DumpJson({{"kind", "chat"},
                                            {"chat", chat.summary.id.str()},
                                            {"title", chat.summary.title},
                                            {"at", FormatTimestamp(chat.summary.created_at)}})};
  for (const Interaction& turn : chat.interactions) {
    for (std::string& leaf : TurnLeaves(turn, std::move(permissions[turn.id.str()])).Take()) {
      leaves.push_back(std::move(leaf));
    }
  }
  return leaves;
}

Proof ProveChat(const Chat& chat, ChatReader& reader, const SigningKey& key) {
  const ChatSource& source = reader.source();
  const AuditFile log(source.root(), nullptr, source.file_system());
  return MakeProof(ProofLeavesOf(chat, log), key, Now(), "reprise " + std::string(Version()));
}

Result<std::set<std::size_t>> SelectLeaves(const Proof& proof, const std::string& selector) {
  std::set<std::size_t> selected;
  const std::size_t dash = selector.find('-');
  const auto from = ParseNumber<std::size_t>(std::string_view(selector).substr(0, dash));
  const auto to =
      dash == std::string::npos ? from : ParseNumber<std::size_t>(std::string_view(selector).substr(dash + 1));
  if (from && to && *from >= 1 && *from <= *to && *to <= proof.leaves.size()) {
    for (std::size_t i = *from - 1; i < *to; ++i) selected.insert(i);
    return selected;
  }
  for (std::size_t i = 0; i < proof.leaves.size(); ++i) {
    if (selector.empty()) break;
    const Named leaf = NameOf(proof.leaves[i]);
    if (leaf.kind == selector || leaf.turn == selector || leaf.call == selector) selected.insert(i);
  }
  if (!selected.empty()) return selected;
  return Fail(ErrorCode::kInvalidArgument, "no leaf is \"" + selector + "\": name a number from 1 to " +
                                               std::to_string(proof.leaves.size()) +
                                               ", a range such as 3-7, a kind such as thinking, a turn or a call");
}

std::size_t LeaveOut(Proof& proof, const std::set<std::size_t>& leaves) {
  bool drops_bodies = false;
  std::set<std::string> turns;  // whose digests go
  for (const std::size_t i : leaves) {
    const Named leaf = NameOf(proof.leaves[i]);
    drops_bodies = drops_bodies || !HasDigests(leaf.kind);
    if (ConcernsCall(leaf)) turns.insert(leaf.turn);
    proof.leaves[i].LeaveOut();
  }
  std::size_t left_out = 0;
  for (Proof::Leaf& each : proof.leaves) {
    const Named leaf = NameOf(each);
    if ((leaf.kind == "body" && drops_bodies) || (HasDigestsOfAllTurns(leaf.kind) && !turns.empty()) ||
        (leaf.kind == "digest" && turns.contains(leaf.turn))) {
      each.LeaveOut();
    }
    left_out += each.is_left_out() ? 1 : 0;
  }
  return left_out;
}

}  // namespace reprise
