#include "cli/record_chat.h"

#include <re2/re2.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
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
#include "engine/request_body.h"
#include "store/memory_interaction_store.h"

namespace reprise {
namespace {

// Finds secrets in texts. Each stays as long as it was: its quotes, backslashes and control characters too, because
// these take more bytes inside a JSON string.
class SecretFinder {
 public:
  SecretFinder(std::vector<std::string> secrets, std::map<std::string, std::size_t>& taken) : taken_(taken) {
    constexpr std::size_t kLeast = 8;  // as Redactor
    for (std::string& secret : secrets) {
      if (secret.size() < kLeast) continue;
      const std::string quoted = DumpJson(secret);
      known_.push_back(quoted.substr(1, quoted.size() - 2));
      if (known_.back() != secret) known_.push_back(std::move(secret));
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
  bool Take(std::string& text, std::size_t at, std::size_t size, const std::string& kind) {
    for (char& c : std::span(text).subspan(at, size)) {
      if (static_cast<unsigned char>(c) >= ' ' && c != '"' && c != '\\') c = 'x';
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

// Makes the digests of all bodies anew.
Result<void> Digest(Json& document) {
  ForeignChat foreign = TRY(ReadChatDocument(document, "the recording"));
  const ChatId chat = ChatId::Parse("recording").value();
  FilesOfExport files(foreign.files);
  MemoryInteractionStore store;
  TRY(store.ImportChat(ToIncomingChat(chat, std::move(foreign))));
  RequestBodies bodies(store, &files, RequestBodies::Digests::kIgnored);
  for (Json& interaction : document["interactions"]) {
    const auto record = interaction.find("record");
    if (record == interaction.end() || !record->contains("requests")) continue;
    const auto id = InteractionId::Parse(TextMember(interaction, "id"));
    const Interaction turn = TRY(store.LoadInteraction(chat, id.value()));
    for (std::size_t i = 0; i < (*record)["requests"].size(); ++i) {
      const auto body = bodies.Of(turn, i);
      if (body) (*record)["requests"][i]["digest"] = Sha256Digest({*body});
    }
    (*record)["redacted"] = true;
  }
  return {};
}

}  // namespace

Result<RecordingForTests> RecordForTests(ChatReader& reader, const ChatId& chat) {
  RecordingForTests recording;
  SecretFinder finder(SecretsOf(reader.options(), environ), recording.taken);
  const ForeignChat foreign = TRY(Read(reader, chat, finder, recording.left_out));
  recording.taken.clear();
  Json document = ToChatDocument(foreign);
  for (const char* part : {"title", "interactions"}) finder.TakeFrom(document[part]);
  if (!recording.taken.empty()) TRY(Digest(document));
  recording.document = document.dump(2) + "\n";
  return recording;
}

}  // namespace reprise
