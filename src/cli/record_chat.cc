#include "cli/record_chat.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "app/secret_finder.h"
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

// Everything that the store has of the chat, but files with secrets.
Result<ForeignChat> Read(ChatReader& reader, const ChatId& id, SecretFinder& finder, std::size_t& left_out) {
  const Chat chat = TRY(reader.store().LoadChat(id));
  const auto incomplete = [&](InteractionId lost, const std::string& why) {
    return Fail(ErrorCode::kCorruption, "the chat is not whole, so it tests nothing: " + lost.str() + " " + why +
                                            "; `reprise verify " + id.str() + "` says more");
  };
  if (!chat.damaged.empty()) return incomplete(chat.damaged.front().id, "cannot be read");
  for (const Interaction& each : chat.interactions) {
    const auto is_parent = [&](const Interaction& other) { return other.id == each.parent_id; };
    if (each.parent_id && std::ranges::none_of(chat.interactions, is_parent)) {
      return incomplete(*each.parent_id, "is missing");
    }
  }
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
  const auto is_kept = [&](const std::string& digest) {
    return std::ranges::find(foreign.blobs, digest, &Blob::digest) != foreign.blobs.end();
  };
  for (Interaction& each : foreign.interactions) ForgetContents(each, is_kept);
  return foreign;
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

// Makes the digests of all bodies and arguments anew. `before`: the turns with their secrets.
Result<void> Digest(const Json& before, Json& document) {
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
  DigestArguments(before, document["interactions"]);
  for (Json& interaction : document["interactions"]) {
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

std::string FilesLeftOut(std::size_t count, const std::string& what) {
  return std::to_string(count) +
         (count == 1 ? " file or content of a file that holds " : " files or contents of files that hold ") + what;
}

void ForgetContents(Interaction& turn, const std::function<bool(const std::string& digest)>& is_kept) {
  for (AgentEvent& event : turn.events) {
    auto* const changed = std::get_if<event::FilesChanged>(&event.payload);
    if (changed == nullptr) continue;
    for (WorkspaceChange& change : changed->changes) {
      for (auto* version : {&change.before, &change.after}) {
        if (*version && (*version)->is_kept() && !is_kept((*version)->digest)) (*version)->digest.clear();
      }
    }
  }
}

Result<RecordingForTests> RecordForTests(ChatReader& reader, const ChatId& chat,
                                         const std::vector<std::string>& words) {
  RecordingForTests recording;
  SecretFinder finder(SecretsOf(reader.options(), environ), words);
  const ForeignChat foreign = TRY(Read(reader, chat, finder, recording.left_out));
  finder.Forget();
  Json document = ToChatDocument(foreign);
  const Json before = document["interactions"];
  for (const char* part : {"title", "interactions"}) finder.TakeFrom(document[part]);
  for (std::size_t i = 0; i < foreign.files.size(); ++i) {  // their contents have been looked at
    finder.TakeFrom(document["files"][i]["filename"]);
  }
  recording.taken = finder.taken();
  if (!recording.taken.empty()) {
    TRY(Digest(before, document));
    TRY(CheckReplays(document));
  }
  recording.document = document.dump(2) + "\n";
  return recording;
}

}  // namespace reprise
