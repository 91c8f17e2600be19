#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/keys.h"
#include "app/secret_finder.h"
#include "app/secrets.h"
#include "base/atomic_write.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/private_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/record_chat.h"
#include "client/archive/chat_folder.h"
#include "client/archive/chat_reader.h"
#include "client/archive/proof_leaves.h"
#include "client/archive/share_page.h"
#include "crypto/proof.h"
#include "domain/codec.h"
#include "domain/transcript/other_formats.h"
#include "domain/transcript/transcript.h"
#include "engine/history.h"
#include "terminal/console.h"
#include "terminal/progress.h"

namespace reprise {
namespace {

// One argument: a chat with its requested and readable interactions.
struct Item {
  Chat chat;
  std::set<InteractionId> branch;  // the head's branch
  bool single = false;             // one interaction was requested
};

class Export {
 public:
  // `counter` counts the interactions that are read and written.
  Export(ChatReader& reader, const CommandLine& line, WorkCounter& counter, Progress& progress)
      : reader_(reader),
        store_(reader.store()),
        files_(reader.files()),
        blobs_(reader.blobs()),
        data_dir_(reader.options().data_dir),
        line_(line),
        counter_(counter),
        progress_(progress) {
    if (!line.redact && line.redact_words.empty()) return;
    finder_.emplace(SecretsOf(reader.options(), environ), line.redact_words);
  }

  // One item at a time, so that a large folder need not fit into memory.
  Exited Run(const std::vector<RecordReference>& wanted, bool everything) {
    const bool folder = IntoFolder(wanted, everything);
    if (line_.output.empty() && IsDocument() && wanted.size() != 1) {
      return Misused("several chats as " + line_.format + " need a folder to go to (--output DIR)");
    }
    if (line_.branches == "all" && (line_.format == "atif" || line_.format == "html")) {
      return Misused(line_.format + " holds one branch");
    }
    if (folder && IsFile(line_.output)) {
      return Misused(line_.output + " is a file; whole chats in this format, and several things, go into a folder");
    }
    if (folder && !line_.dry_run) {
      TRY(CreateDirectories(Disk(), line_.output));
    }
    BeginProgress(wanted, folder);
    std::string text;
    bool first = true;
    for (const RecordReference& what : wanted) {
      const auto item = Load(what, everything);
      if (progress_.interrupted()) return kExitFailure;
      if (!item) continue;
      if (folder && !line_.dry_run) {
        auto written = Write(*item);
        if (progress_.interrupted()) return kExitFailure;
        if (written) Count(*item);
        written ? exported_.push_back(*written) : void(status_ = Complain(written.error()));
        continue;
      }
      auto document = Text(*item);
      if (!document) {
        status_ = Complain(document.error());
        continue;
      }
      Count(*item);
      if (line_.format == "markdown" && !first) text += "\n";
      first = false;
      text += *document;
      if (line_.dry_run) text.clear();
      if (line_.output.empty()) Print(std::exchange(text, {}));
    }
    if (!folder && !line_.output.empty() && !first && !line_.dry_run) {
      TRY(WriteOutputFile(line_.output, text, line_.force));
      exported_.push_back(line_.output);
    }
    progress_.End();
    SayWhatIsTaken();
    if (line_.json && !line_.output.empty()) {
      PrintDocument({{"ok", status_ == kExitOk}, {"exported", exported_}});
    } else if (!exported_.empty()) {
      Print(CountOf(interactions_, "interaction") + " of " + CountOf(chats_, "chat") + " written to " +
            VisibleLine(line_.output) + "\n");
    }
    return status_;
  }

 private:
  // The folder of a chat is read and then written; for other outputs only the reading takes time.
  void BeginProgress(const std::vector<RecordReference>& wanted, bool folder) {
    LongTask task{.doing = "exporting", .things = "interactions"};
    if (folder && line_.format == "json") task.steps_each = 2;
    const bool chats =
        std::ranges::none_of(wanted, [](const RecordReference& what) { return what.interaction.has_value(); });
    if (progress_.is_shown() && chats) {
      std::vector<ChatId> ids;
      for (const RecordReference& what : wanted) ids.push_back(what.chat);
      task.total = CountStored(data_dir_, ids).interactions;
    }
    progress_.Begin(std::move(task));
  }

  // A format with a document for each chat.
  bool IsDocument() const { return line_.format == "json" || line_.format == "atif" || line_.format == "html"; }

  void SayWhatIsTaken() {
    if (!finder_) return;
    for (const auto& [kind, times] : taken_) {
      Warn((line_.dry_run ? "would be taken out: " : "taken out: ") + kind + ", " + Counted(times, "time"));
    }
    if (left_out_ > 0) {
      Warn((line_.dry_run ? "would be left out: " : "left out: ") + FilesLeftOut(left_out_, "such a text"));
    }
    if (taken_.empty() && left_out_ == 0) Warn("nothing to take out was found");
  }

  void Count(const Item& item) {
    ++chats_;
    interactions_ += item.chat.interactions.size();
  }

  bool IntoFolder(const std::vector<RecordReference>& wanted, bool everything) const {
    if (line_.output.empty()) return false;
    if (IsDirectory(line_.output) || line_.output.ends_with('/')) return true;
    const bool chats =
        everything || std::ranges::any_of(wanted, [](const RecordReference& what) { return !what.interaction; });
    if (line_.format == "json" && !finder_) return chats || wanted.size() > 1;
    return (line_.format == "markdown" || IsDocument()) && (everything || wanted.size() > 1);
  }

  // Null if there is nothing to write; the reason has been printed.
  std::optional<Item> Load(const RecordReference& what, bool everything) {
    auto chat = store_.LoadChat(what.chat);
    if (progress_.interrupted()) return std::nullopt;
    const bool empty = !chat && chat.error().code == ErrorCode::kNotFound;
    if (empty && everything) return std::nullopt;       // or deleted meanwhile
    if (!chat && what.interaction) chat = Alone(what);  // its chat.json is damaged, or the chat does not exist
    if (!chat) {
      status_ = Complain(NotThere(chat.error(), what, data_dir_));
      return std::nullopt;
    }
    Item item{.chat = *std::move(chat), .branch = {}, .single = what.interaction.has_value()};
    item.branch = HeadBranch(item.chat);
    auto& interactions = item.chat.interactions;
    if (what.interaction) {
      std::erase_if(interactions, [&](const Interaction& one) { return one.id != *what.interaction; });
      if (interactions.empty()) {
        const auto missing = store_.LoadInteraction(what.chat, *what.interaction);
        status_ = Complain(missing ? MakeError(ErrorCode::kCorruption, what.interaction->str() + " is damaged")
                                   : NotThere(missing.error(), what, data_dir_));
        return std::nullopt;
      }
    } else {
      if (!AllBranches()) {
        std::erase_if(interactions, [&](const Interaction& one) { return !item.branch.contains(one.id); });
      }
      ComplainOfDamage(item.chat);
      if (!item.chat.damaged.empty()) status_ = kExitFailure;
    }
    return item;
  }

  Result<Chat> Alone(const RecordReference& what) {
    return store_.LoadInteraction(what.chat, *what.interaction).map([&](Interaction interaction) {
      Chat chat{.summary = {.id = what.chat,
                            .title = TitleFromMessage(interaction.user_message),
                            .created_at = interaction.created_at,
                            .updated_at = interaction.completed_at.value_or(interaction.created_at),
                            .head = interaction.id,
                            .head_status = interaction.status},
                .interactions = {},
                .damaged = {}};
      chat.interactions.push_back(std::move(interaction));
      return chat;
    });
  }

  bool AllBranches() const {
    const bool usually = line_.format == "json" || line_.format == "claude-code";
    return line_.branches.empty() ? usually : line_.branches == "all";
  }

  // False after a failure, which has been printed.
  bool Redact(Interaction& one) {
    auto redacted = finder_->TakenFrom(one);
    if (!redacted) status_ = Complain(redacted.error());
    if (redacted) one = *std::move(redacted);
    return redacted.has_value();
  }

  // The whole item as one JSON document.
  Result<std::string> Document(const Item& item) {
    if (!item.single) return WholeChat(item.chat);
    Interaction one = TRY(store_.LoadInteraction(item.chat.summary.id, item.chat.interactions.front().id));
    if (finder_) {
      one = TRY(finder_->TakenFrom(one));
      std::set<std::string> left_out;
      ForgetContents(one, [&](const std::string& digest) {
        auto content = blobs_.Get(item.chat.summary.id, digest);
        const bool is_clean = content && !finder_->TakeFrom(*content);
        if (content && !is_clean) left_out.insert(digest);
        return is_clean;
      });
      left_out_ += left_out.size();
    }
    return DumpJson(ToJson(one)) + "\n";
  }

  void AddTaken(const std::map<std::string, std::size_t>& taken) {
    for (const auto& [kind, times] : taken) taken_[kind] += times;
  }

  // Counts what is to be taken out of a document as it would be without that: a record says most things twice.
  void CountIn(std::string document) {
    finder_->Forget();
    finder_->TakeFrom(document);
    AddTaken(finder_->taken());
  }

  Result<std::string> WithoutSecrets(const ChatId& chat) {
    RecordingForTests recording = TRY(RecordForTests(reader_, chat, line_.redact_words));
    AddTaken(recording.taken);
    left_out_ += recording.left_out;
    std::string document;
    const std::string name = "\"" + chat.str() + "\"", shown = "\"" + NameOf(chat).str() + "\"";
    for (std::string_view rest = recording.document; !rest.empty();) {  // in ids, which nothing else is taken from
      const std::size_t at = std::min(rest.find(name), rest.size());
      document += rest.substr(0, at);
      rest.remove_prefix(at);
      if (rest.empty()) break;
      document += shown;
      rest.remove_prefix(name.size());
    }
    return document;
  }

  Result<std::string> WholeChat(const Chat& chat) {
    if (finder_) return WithoutSecrets(chat.summary.id);
    auto reader = TRY(OpenHistory(store_, chat.summary.id, {.all_branches = AllBranches()}, HistoryStates::kAdded, {}));
    const auto text = TRY(HistoryDocument(std::move(reader), AllBranches()).Next(std::string::npos));
    return *text + "\n";
  }

  // Turns that cannot be read or redacted are missing; these failures have been printed.
  Result<std::string> Text(const Item& item) {
    if (line_.format == "atif") return Turns(item, FormatAtif);
    if (line_.format == "claude-code") return Turns(item, FormatClaudeCode);
    if (line_.format == "markdown") return Markdown(item);
    if (line_.format == "jsonl") return Conversations(item);
    if (finder_) finder_->Forget();
    auto text = line_.format == "json" ? Document(item) : Page(item);
    if (finder_) AddTaken(finder_->taken());
    return text;
  }

  // Of the turns with the messages that are theirs.
  std::string Turns(const Item& item, std::string (*format)(const ChatSummary&, const std::vector<AddedInteraction>&)) {
    std::vector<AddedInteraction> turns;
    for (const Interaction& one : item.chat.interactions) {
      auto added = store_.LoadAdded(item.chat.summary.id, one.id);
      added ? turns.push_back(*std::move(added)) : void(status_ = Complain(added.error()));
    }
    if (finder_) {
      CountIn(format(item.chat.summary, turns));
      std::erase_if(turns, [&](AddedInteraction& each) { return !Redact(each.interaction); });
    }
    return format(SummaryOf(item), turns);
  }

  // The proof of the item, to read.
  Result<std::string> Page(const Item& item) {
    if (!item.single && !item.chat.damaged.empty()) return Fail(ChatIsDamaged(item.chat.summary.id));
    // A dry run only counts, so any key will do, and the user's is not made.
    const SigningKey key = line_.dry_run ? SigningKey(SecretKey::Random()) : TRY(ProofKeyOf(reader_.options()));
    return SharePage(ProveChat(item.chat, reader_, key), item.chat, reader_, finder_ ? &*finder_ : nullptr);
  }

  // For the formats that show it.
  ChatSummary SummaryOf(const Item& item) {
    ChatSummary summary = item.chat.summary;
    if (finder_) finder_->TakeFrom(summary.title);
    summary.id = NameOf(summary.id);
    return summary;
  }

  // The chat's name, which may say what is to be taken out.
  ChatId NameOf(const ChatId& chat) {
    std::string name = chat.str();
    return finder_ && finder_->TakeFrom(name) ? ChatId::Parse(name).value_or(chat) : chat;
  }

  Result<std::string> Markdown(const Item& item) {
    const auto formatted = [&item](const ChatSummary& summary, const std::vector<Interaction>& interactions) {
      std::vector<MarkdownTurn> turns;
      for (const Interaction& one : interactions) turns.push_back({&one, !item.branch.contains(one.id)});
      return FormatMarkdown(summary, turns);
    };
    if (!finder_) return formatted(item.chat.summary, item.chat.interactions);
    CountIn(formatted(item.chat.summary, item.chat.interactions));
    std::vector<Interaction> interactions = item.chat.interactions;
    std::erase_if(interactions, [&](Interaction& one) {
      one.final_agent_state.reset();  // which is not shown
      return !Redact(one);
    });
    if (interactions.empty() && item.single) return Fail(ErrorCode::kCorruption, "nothing is left of the turn");
    return formatted(SummaryOf(item), interactions);
  }

  // A line for each branch: the agent's messages at its end.
  std::string Conversations(const Item& item) {
    std::set<InteractionId> ends;
    for (const Interaction& one : item.chat.interactions) ends.insert(one.id);
    for (const Interaction& one : item.chat.interactions) {
      if (one.parent_id) ends.erase(*one.parent_id);
    }
    std::string lines;
    for (const InteractionId end : ends) {
      auto interaction = store_.LoadInteraction(item.chat.summary.id, end);
      if (!interaction) {
        status_ = Complain(interaction.error());
        continue;
      }
      const auto& state = interaction->final_agent_state;
      if (finder_ && state) CountIn(ConversationLine(*state));
      if (finder_ && !Redact(*interaction)) continue;
      if (state) lines += ConversationLine(*state);
    }
    return lines;
  }

  // Returns the path that it has made.
  Result<std::string> Write(const Item& item) {
    std::string path = line_.output + (line_.output.ends_with('/') ? "" : "/") + NameOf(item.chat.summary.id).str();
    if (line_.format == "json" && !item.single && !finder_) {
      return WriteChatFolder(line_.output, item.chat, store_, files_, blobs_, line_.force, counter_)
          .map([&](const std::vector<Error>& left) {
            for (const Error& damaged : left) status_ = Complain(damaged);
            return path;
          });
    }
    if (item.single) path += "-" + item.chat.interactions.front().id.str();
    const std::string& format = line_.format;
    path += format == "json" || format == "atif" ? ".json"
            : format == "markdown"               ? ".md"
            : format == "html"                   ? ".html"
                                                 : ".jsonl";
    TRY(WriteOutputFile(path, TRY(Text(item)), line_.force));
    return path;
  }

  ChatReader& reader_;
  InteractionStore& store_;
  FileStore& files_;
  BlobStore& blobs_;
  const std::string& data_dir_;
  const CommandLine& line_;
  WorkCounter& counter_;
  Progress& progress_;
  std::optional<SecretFinder> finder_;        // null: nothing is redacted
  std::map<std::string, std::size_t> taken_;  // kinds of secrets in what is written
  std::size_t left_out_ = 0;                  // files, and contents of workspace files, that hold some
  std::vector<std::string> exported_;         // paths
  std::size_t chats_ = 0, interactions_ = 0;  // in them
  int status_ = kExitOk;
};

}  // namespace

Exited RunExport(const CommandLine& line, const Environment& environment) {
  WorkCounter counter;
  auto reader = TRY(OfUse(ChatReader::Open(line.flags, environment, &counter)));
  for (const std::string& word : line.redact_words) {
    if (Utf8Prefix(word, 2) == word) return Misused("--redact-word needs at least three characters");
  }
  if (!line.output.empty() && LiesIn(line.output, reader.options().data_dir)) {
    return Misused("--output lies in the data folder, which is the server's");
  }
  std::vector<RecordReference> wanted;
  for (const std::string& argument : line.arguments) {
    const auto what = FindRecord(argument, reader.names()), exact = ParseReference(argument);
    const bool is_missing = !what && what.error().code == ErrorCode::kNotFound && exact;
    if (!what && !is_missing) return ComplainOfUse(what.error());
    wanted.push_back(is_missing ? *exact : *what);  // a missing chat does not stop the others
  }
  const bool everything = wanted.empty();
  if (everything) {
    const auto chats = TRY(reader.AllChats());
    for (const ChatId& chat : chats) wanted.push_back({chat, std::nullopt});
  }
  Progress progress(counter, environment);
  return Export(reader, line, counter, progress).Run(wanted, everything);
}

}  // namespace reprise
