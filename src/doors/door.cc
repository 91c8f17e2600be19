#include "doors/door.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/try.h"
#include "domain/codec.h"
#include "reprise/file_store.h"

namespace reprise {
namespace {

// True if the interaction to run again had exactly these files.
Result<bool> HasFiles(Engine& engine, const ConversationPlan& plan, const std::vector<ForeignFile>& files) {
  std::map<FileId, std::string> digests;
  for (const FileInfo& file : TRY(engine.ListFiles(plan.chat)).files) digests[file.id] = file.digest;
  std::multiset<std::string> had, has;
  const auto before = TRY(engine.GetInteraction(plan.chat, *plan.interaction));
  for (const Attachment& each : before.attachments) had.insert(digests[each.id]);
  for (const ForeignFile& each : files) has.insert(ArgumentsDigest(each.content));
  return had == has;
}

}  // namespace

Result<EventSubscription> BeginWithFiles(Engine& engine, Conversations& conversations, ConversationPlan plan,
                                         const std::vector<ForeignFile>& files, StartRequest start) {
  if (start.request) {
    if (auto before = TRY(conversations.FollowRepeated(plan, *start.request))) return *std::move(before);
  }
  // A chat that works elsewhere gets no turns or files, and no other head.
  const bool changes_before = !plan.unknown.empty() || !files.empty() || plan.moves_head;
  if (changes_before && !start.workspace.empty()) TRY(engine.WorkIn(plan.chat, start.workspace));
  // A regenerated message keeps its files; with other files it is another message.
  if (plan.kind == ConversationPlan::Kind::kRegenerate && !files.empty() && !TRY(HasFiles(engine, plan, files))) {
    plan.kind = ConversationPlan::Kind::kEdit;
  }
  const bool is_new = plan.kind != ConversationPlan::Kind::kRegenerate;
  if (is_new && (plan.kind == ConversationPlan::Kind::kEdit || !files.empty())) {
    start.attachments.emplace();
    for (const ForeignFile& each : files) {
      const auto file = TRY(MakeFile(each.filename, each.mime_type, each.content));
      // The chat may have the same file already, under another id.
      start.attachments->push_back(TRY(engine.AddFile(plan.chat, file)).id);
    }
  }
  return conversations.Begin(plan, std::move(start));
}

std::string Door::PageAddress(const Request& request) const {
  const std::string* host = request.head.Find("host");
  if (!has_page || host == nullptr) return {};
  const std::string* scheme = request.head.Find("x-forwarded-proto");
  return (scheme != nullptr && *scheme == "https" ? "https://" : "http://") + *host + "/";
}

Result<void> Door::TakeHeaders(const Request& request, StartRequest& start, ForeignConversation& conversation) const {
  RunHeaders headers = TRY(RunHeadersOf(request));
  if (start.model.empty()) start.model = std::move(headers.model);
  start.approval_mode = headers.approval_mode;
  if (headers.workspace.empty()) return {};
  start.workspace = conversation.workspace = TRY(engine.OpenWorkspace(headers.workspace))->path;
  return {};
}

Result<EventSubscription> Door::Begin(const std::function<Result<ConversationPlan>()>& find, bool is_named,
                                      const std::vector<ForeignFile>& files, const StartRequest& start) const {
  constexpr int kMostTries = 5;
  std::optional<ChatId> busy;
  for (int tries = 1;; ++tries) {
    const auto plan = TRY(find());
    auto started = BeginWithFiles(engine, *conversations, plan, files, start);
    if (started || tries == kMostTries) return started;
    if (started.error().Is(Reason::kBusy) && !is_named && busy != plan.chat) {
      busy = plan.chat;
    } else if (!started.error().Is(Reason::kStale)) {
      return started;
    }
  }
}

HeaderList EventsLocation(const EventSubscription& run) {
  if (!run.interaction_id) return {};
  return {
      {"Content-Location", "/chats/" + run.chat_id.str() + "/interactions/" + run.interaction_id->str() + "/events"}};
}

StreamReply StreamOf(EventSubscription run) {
  StreamReply reply{.log = run.log, .hold = nullptr, .headers = EventsLocation(run)};
  reply.hold = std::make_shared<EventSubscription>(std::move(run));
  return reply;
}

StreamReply StreamOf(TranslatedStream stream, HeaderList headers, std::shared_ptr<void> client) {
  using Held = std::pair<std::shared_ptr<void>, std::shared_ptr<void>>;
  return {.log = std::move(stream.log),
          .hold = std::make_shared<Held>(std::move(stream.hold), std::move(client)),
          .headers = std::move(headers),
          .forgets = true};
}

}  // namespace reprise
