#include "doors/foreign_files.h"

#include <map>
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

}  // namespace reprise
