#include "cli/record_chat.h"

#include <re2/re2.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "app/secrets.h"
#include "base/text.h"
#include "base/try.h"
#include "client/archive/chat_folder.h"
#include "crypto/digest.h"
#include "domain/codec.h"
#include "engine/attachments.h"
#include "engine/chat_document.h"
#include "engine/elastic_pool.h"
#include "engine/recorded_replay.h"
#include "engine/request_body.h"
#include "store/memory_interaction_store.h"

namespace reprise {
namespace {

// Finds secrets in texts. Each stays as long as it was, also inside JSON strings: quotes, control characters and
// escapes such as \n stay as they are.
class SecretFinder {
 public:
  SecretFinder(std::vector<std::string> secrets, std::map<std::string, std::size_t>& taken) : taken_(taken) {
    constexpr std::size_t kLeast = 8;  // as Redactor
    for (std::string& secret : secrets) {
      if (secret.size() < kLeast) continue;
      // As it stands in texts, in JSON, and in JSON inside a string of JSON.
      std::set<std::string> forms{secret};
      for (int depth = 0; depth < 2; ++depth) {
        for (const std::string& form : std::set(forms)) {
          forms.insert(Quoted(form, /*ascii=*/false));
          forms.insert(Quoted(form, /*ascii=*/true));
        }
      }
      known_.insert(known_.end(), forms.begin(), forms.end());
    }
    std::ranges::sort(known_, {}, [](const std::string& each) { return -static_cast<std::ptrdiff_t>(each.size()); });
    constexpr std::pair<const char*, const char*> kKinds[] = {
        {"a key of a model provider", R"(\b(sk-[A-Za-z0-9_-]{20,}|gsk_[A-Za-z0-9]{20,}|AIza[A-Za-z0-9_-]{30,}))"},
        {"a token of GitHub", R"(\b(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}))"},
        {"a token of GitLab", R"(\b(glpat-[A-Za-z0-9_-]{20,}))"},
        {"a token of Slack", R"(\b(xox[abprs]-[A-Za-z0-9-]{10,}))"},
        {"a key of AWS", R"(\b((?:AKIA|ASIA)[A-Z0-9]{16})\b)"},
        {"a signed token", R"(\b(eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}))"},
        {"a private key",
         R"((-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\s\\]+-----END [A-Z ]*PRIVATE KEY-----))"}};
    for (const auto& [kind, pattern] : kKinds) kinds_.emplace_back(kind, std::make_unique<RE2>(pattern));
  }

  // Whether there was any.
  bool TakeFrom(std::string& text) {
    bool any = false;
    for (const std::string& secret : known_) {
      for (std::size_t at = text.find(secret); at != text.npos; at = text.find(secret, at + secret.size())) {
        any = Take(text, at, secret.size(), "a secret of the configuration or the environment");
      }
    }
    for (const auto& [kind, pattern] : kinds_) {
      re2::StringPiece rest(text), found;
      std::vector<std::pair<std::size_t, std::size_t>> places;
      while (RE2::FindAndConsume(&rest, *pattern, &found)) {
        places.emplace_back(static_cast<std::size_t>(found.data() - text.data()), found.size());
      }
      for (const auto& [at, size] : places) any = Take(text, at, size, kind);
    }
    return any;
  }
  void TakeFrom(Json& json) {
    if (json.is_string()) TakeFrom(json.get_ref<std::string&>());
    if (!json.is_structured()) return;
    for (Json& each : json) TakeFrom(each);
  }

 private:
  static std::string Quoted(const std::string& text, bool ascii) {
    const std::string quoted = Json(text).dump(-1, ' ', ascii, Json::error_handler_t::replace);
    return quoted.substr(1, quoted.size() - 2);
  }
  bool Take(std::string& text, std::size_t at, std::size_t size, const std::string& kind) {
    constexpr std::string_view kEscaped = "\"\\/bfnrtu";
    constexpr std::size_t kDigits = 4;  // of \u
    for (std::size_t i = at; i < at + size; ++i) {
      char& c = text[i];
      const bool is_escaped = i > at && text[i - 1] == '\\' && kEscaped.find(c) != kEscaped.npos;
      if (is_escaped) {
        i += c == 'u' ? kDigits : 0;
      } else if (static_cast<unsigned char>(c) >= ' ' && c != '"' && c != '\\') {
        c = 'x';
      }
    }
    ++taken_[kind];
    return true;
  }

  std::map<std::string, std::size_t>& taken_;
  std::vector<std::string> known_;  // the longest first
  std::vector<std::pair<std::string, std::unique_ptr<RE2>>> kinds_;
};

// Everything that the store has of the chat, but files with secrets.
Result<ForeignChat> Read(ChatReader& reader, const ChatId& id, SecretFinder& finder, std::size_t& left_out) {
  const Chat chat = TRY(reader.store().LoadChat(id));
  ForeignChat foreign{.name = id.str(),
                      .title = chat.summary.title,
                      .created_at = chat.summary.created_at,
                      .updated_at = chat.summary.updated_at,
                      .head = chat.summary.head};
  for (const Interaction& each : chat.interactions) {
    AddedInteraction added = TRY(reader.store().LoadAdded(id, each.id));
    if (auto& state = added.interaction.final_agent_state) state->request.reset();  // of a request with its secrets
    if (added.kept_messages > 0) foreign.kept_messages[each.id] = added.kept_messages;
    foreign.interactions.push_back(std::move(added.interaction));
  }
  const auto is_clean = [&](std::string content) { return !finder.TakeFrom(content); };
  for (const FileInfo& info : TRY(reader.files().List(id)).files) {
    StoredFile file = TRY(reader.files().Get(id, info.id));
    is_clean(file.content) ? foreign.files.push_back(std::move(file)) : void(++left_out);
  }
  for (const std::string& digest : TRY(reader.blobs().List(id))) {
    std::string content = TRY(reader.blobs().Get(id, digest));
    is_clean(content) ? foreign.blobs.push_back({digest, std::move(content)}) : void(++left_out);
  }
  return foreign;
}

// Makes the digests of arguments anew that people were asked about.
void DigestArguments(Json& events) {
  std::map<std::string, std::string> digests;  // by approval
  for (Json& event : events) {
    if (!event.contains("arguments_digest") || TextMember(event, "arguments_digest").empty()) continue;
    const std::string approval = TextMember(event, "approval_id");
    const bool has_own = event.contains("tool_input");  // an answer that keeps the arguments repeats none
    if (!has_own && !digests.contains(approval)) continue;
    std::string digest = has_own ? ArgumentsDigest(TextMember(event, "tool_input")) : digests[approval];
    event["arguments_digest"] = digest;
    digests.try_emplace(approval, std::move(digest));
  }
}

// Reads the document as `reprise test` will, and calls `look` for each turn.
using Look = std::function<Result<void>(const Interaction& turn, RequestBodies& bodies)>;
Result<void> ReadBack(const Json& document, RequestBodies::Digests digests, const Look& look) {
  ForeignChat foreign = TRY(ReadChatDocument(document, "the recording"));
  const ChatId chat = ChatId::Parse("recording").value();
  FilesOfExport files(foreign.files);
  MemoryInteractionStore store;
  std::vector<InteractionId> turns;
  for (const Interaction& each : foreign.interactions) turns.push_back(each.id);
  TRY(store.ImportChat(ToIncomingChat(chat, std::move(foreign))));
  RequestBodies bodies(store, &files, digests);
  for (const InteractionId& id : turns) TRY(look(TRY(store.LoadInteraction(chat, id)), bodies));
  return {};
}

// Makes the digests of all bodies and arguments anew.
Result<void> Digest(Json& document) {
  std::map<std::string, std::vector<std::string>> digests;  // of the bodies, by turn
  TRY(ReadBack(document, RequestBodies::Digests::kIgnored, [&](const Interaction& turn, RequestBodies& bodies) {
    auto& of_turn = digests[turn.id.str()];
    const std::size_t count = turn.record && turn.record->requests ? turn.record->requests->size() : 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto body = bodies.Of(turn, i);
      of_turn.push_back(body ? Sha256Digest({*body}) : (*turn.record->requests)[i].body.digest);
    }
    return Result<void>();
  }));
  for (Json& interaction : document["interactions"]) {
    if (interaction.contains("agent_events")) DigestArguments(interaction["agent_events"]);
    const auto record = interaction.find("record");
    if (record == interaction.end() || !record->contains("requests")) continue;
    const auto& of_turn = digests[TextMember(interaction, "id")];
    for (std::size_t i = 0; i < of_turn.size(); ++i) (*record)["requests"][i]["digest"] = of_turn[i];
    (*record)["redacted"] = true;
  }
  return {};
}

// kConflict if a turn does not do again what it did.
Result<void> CheckReplays(const Json& document) {
  ElasticPool pool;
  const Executor executor = [&pool](std::function<void()> job) { pool.Submit(std::move(job)); };
  return ReadBack(
      document, RequestBodies::Digests::kChecked, [&](const Interaction& turn, RequestBodies& bodies) -> Result<void> {
        const auto report = ReplayRecorded(turn, executor);
        const auto faults = bodies.FaultsOf(turn);
        if (!report || (!report->divergence && faults.empty())) return {};  // the test says why it cannot
        return Fail(ErrorCode::kConflict, turn.id.str() + " would not pass in the suite without its secrets: " +
                                              (faults.empty() ? report->divergence->reason : faults.front()) +
                                              "; `reprise export` keeps them");
      });
}

}  // namespace

Result<RecordingForTests> RecordForTests(ChatReader& reader, const ChatId& chat) {
  RecordingForTests recording;
  SecretFinder finder(SecretsOf(reader.options(), environ), recording.taken);
  const ForeignChat foreign = TRY(Read(reader, chat, finder, recording.left_out));
  recording.taken.clear();
  Json document = ToChatDocument(foreign);
  for (const char* part : {"title", "interactions"}) finder.TakeFrom(document[part]);
  if (!recording.taken.empty()) {
    TRY(Digest(document));
    TRY(CheckReplays(document));
  }
  recording.document = document.dump(2) + "\n";
  return recording;
}

}  // namespace reprise
