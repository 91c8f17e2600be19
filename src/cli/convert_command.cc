#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/chat_bucket.h"
#include "app/folders.h"
#include "app/keys.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/private_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "client/archive/chat_reader.h"
#include "client/archive/folder_conversion.h"
#include "crypto/jwe.h"
#include "domain/codec.h"
#include "store/chat_files.h"
#include "store/file_blob_store.h"
#include "store/file_interaction_store.h"
#include "store/incoming_chats.h"
#include "store/record.h"
#include "store/sealed_file_store.h"
#include "terminal/console.h"
#include "terminal/progress.h"

namespace reprise {
namespace {

enum class Direction { kEncrypt, kDecrypt };

class Conversion {
 public:
  Conversion(Direction direction, const CommandLine& line, Options options, const Environment& environment)
      : direction_(direction), line_(line), options_(std::move(options)), environment_(environment) {
    options_.plain = false;  // one side is sealed, whatever the server's setting
  }

  Exited Run() {
    if (line_.arguments.empty() == !line_.all_chats) return Misused("name a file or chats, or say --all");
    if (line_.in_place && (!line_.all_chats || !line_.output.empty()))
      return Misused("--in-place goes with --all alone");
    if (line_.in_place) return InPlace();
    if (line_.arguments.size() == 1 && MeansFile(line_.arguments.front())) return File(line_.arguments.front());
    if (line_.output.empty()) return Misused("chats need a data folder to go to (--output DIR)");
    if (LiesIn(line_.output, options_.data_dir)) {
      return Misused("--output lies in the data folder (which is converted itself by --all --in-place)");
    }
    return Chats();
  }

 private:
  // Null for the plain side.
  Result<KeyChange> Keys(const std::string& target) const {
    if (direction_ == Direction::kDecrypt) {
      return KeysFor(options_).map([](auto keys) { return KeyChange{std::move(keys), nullptr}; });
    }
    return KeysForWriting(options_, target, FolderUse::kReplace).map([](auto keys) {
      return KeyChange{nullptr, std::move(keys)};
    });
  }

  // An argument in the form of a chat's id means the chat, unless only a file has that name.
  bool MeansFile(const std::string& what) const {
    if (!IsFile(what)) return false;
    const auto reference = ParseReference(what);
    if (!reference) return true;
    const auto files =
        ChatFiles(options_.data_dir, MakeRecordFormat(nullptr), Disk()).ListInteractions(reference->chat);
    return !files || (files->checkpoints.empty() && files->journals.empty());
  }

  // --- a file ---
  Exited File(const std::string& path) {
    auto text = TRY(direction_ == Direction::kDecrypt ? Decrypted(path) : Encrypted(path));
    if (line_.output.empty()) {
      Print(text);
      return kExitOk;
    }
    TRY(WriteOutputFile(line_.output, text, line_.force));
    const char* const how = direction_ == Direction::kEncrypt ? " sealed in " : " in plain in ";
    return PrintEither(line_.json, {{"ok", true}, {"output", line_.output}},
                       VisibleLine(path + how + line_.output) + "\n");
  }

  Result<std::string> Decrypted(const std::string& path) const {
    return ReadLoneFile(path, options_).map([](LoneFile file) { return std::move(file.text); });
  }

  // A lone file does not know its parent's sealed form, so it is not bound to that.
  Result<std::string> Encrypted(const std::string& path) const {
    const auto text = TRY(Disk().ReadFile(path, kMaxRecordBytes));
    if (LooksLikeJwe(text)) return Fail(ErrorCode::kInvalidArgument, path + " is sealed already");
    if (const auto place = PlaceOfFile(text)) return EncryptedFile(*place, text);
    const auto interaction =
        ParseJson(text, 2 * kMaxJsonDepth).and_then([](const Json& json) { return InteractionFromJson(json); });
    if (!interaction) {
      return Fail(ErrorCode::kInvalidArgument,
                  path + " is neither an interaction nor a file of a chat (chats are sealed by their name): " +
                      interaction.error().message);
    }
    const auto keys = TRY(KeysForWriting(options_, options_.data_dir, FolderUse::kReplace));
    std::string stored;
    AppendJson(stored, *interaction);
    return MakeRecordFormat(keys)
        ->Seal({.chat = interaction->chat_id, .interaction = interaction->id},
               {.parent = interaction->parent_id, .parent_digest = std::nullopt}, stored)
        .map([](SealedRecord record) { return std::move(record.text) + "\n"; });
  }

  Result<std::string> EncryptedFile(const RecordPlace& place, const std::string& text) const {
    if (const auto file = FileFromJson(place, text); !file) return Fail(file.error());
    const auto keys = TRY(KeysForWriting(options_, options_.data_dir, FolderUse::kReplace));
    return MakeRecordFormat(keys)->Seal(place, {}, text).map([](SealedRecord record) {
      return std::move(record.text) + "\n";
    });
  }

  // --- chats ---
  Exited Chats() {
    const auto keys = TRY(Keys(line_.output));
    WorkCounter counter, reads(counter.stop_source());
    auto from = FileInteractionStore::Open({.root = options_.data_dir,
                                            .keys = keys.from,
                                            .file_system = Disk(),
                                            .access = FileInteractionStore::Access::kReadOnly,
                                            .reads = &reads});
    if (!from) return Complain(NoDataFolder(options_.data_dir));
    const auto bucket = ChatBucket::OpenToRead(options_, counter.stop_token());
    SealedFileStore files(
        {.root = options_.data_dir, .keys = keys.from, .file_system = Disk(), .bucket = FilesOf(bucket)});
    FileBlobStore blobs(options_.data_dir, keys.from, Disk());
    const auto wanted = TRY(Wanted());
    Progress progress(counter, environment_);
    auto target =
        IncomingChats::Open({.root = line_.output, .keys = keys.to, .file_system = Disk(), .counter = &counter});
    if (!target)
      return Complain(target.error());  // before the progress ends, because after a Ctrl-C that ends the process
    const std::string doing = direction_ == Direction::kEncrypt ? "sealing" : "opening";
    progress.Begin(CopyTask(doing, options_.data_dir, wanted, progress));
    for (const ChatId& chat : wanted) {
      auto whole = WholeChat(**from, chat);
      if (!whole && whole.error().code == ErrorCode::kNotFound && line_.all_chats) continue;  // empty, or deleted
      auto added = whole.and_then([&](IncomingChat& found) {
        return AddFiles(files, found).and_then([&] { return AddBlobs(blobs, found); }).and_then([&] {
          return target->Add(found);
        });
      });
      if (progress.interrupted()) break;
      if (!added) {
        const Error error = whole ? added.error() : NotThere(whole.error(), {chat, std::nullopt}, options_.data_dir);
        failed_.push_back({{"chat_id", chat.str()}, {"message", error.message}});
        Complain(error);
        continue;
      }
      WarnOfUnfinished(chat);
      converted_.push_back(chat);
    }
    progress.End();
    return Finish(line_.output, std::nullopt);
  }

  Result<std::vector<ChatId>> Wanted() const {
    if (line_.all_chats) {
      auto all = ChatFiles(options_.data_dir, MakeRecordFormat(nullptr), Disk()).ListChats();
      if (all) std::ranges::sort(*all);
      return all;
    }
    std::vector<ChatId> chats;
    for (const std::string& argument : line_.arguments) {
      const auto exact = ChatId::Parse(argument);
      if (!exact) return Fail(ErrorCode::kInvalidArgument, "there is neither a chat nor a file " + argument);
      const auto chat = FindChat(argument, IdsIn(options_.data_dir, Disk(), FullPath(options_.data_dir)));
      if (!chat && chat.error().code == ErrorCode::kConflict) return Fail(chat.error());
      chats.push_back(chat ? *chat : *exact);
    }
    return chats;
  }

  void WarnOfUnfinished(const ChatId& chat) const {
    const auto files = ChatFiles(options_.data_dir, MakeRecordFormat(nullptr), Disk()).ListInteractions(chat);
    if (!files) return;
    for (const std::uint32_t number : files->journals) {
      if (files->checkpoints.contains(number)) continue;
      Warn(chat.str() + "/" + InteractionId::FromNumber(number).str() + " has not ended, and is left out");
    }
  }

  // --- the data folder ---
  Exited InPlace() {
    if (!ListTenants(options_.data_dir, Disk()).empty()) {
      return Complain(MakeError(ErrorCode::kConflict, options_.data_dir +
                                                          " holds chats of several users, in .tenants; "
                                                          "convert each user's folder by itself, with --output"));
    }
    const auto keys = TRY(Keys(options_.data_dir));
    WorkCounter counter;
    Progress progress(counter, environment_);
    const auto bucket = ChatBucket::OpenToRead(options_, counter.stop_token());
    const auto kept = ConvertFolder(options_.data_dir, keys, FilesOf(bucket), converted_, counter, progress);
    // If the conversion is complete despite a signal, first print where the old folder is.
    if (!kept || !progress.interrupted()) progress.End();
    if (!kept) return Complain(kept.error());
    const int status = Finish(options_.data_dir, *kept);
    if (!line_.json) {
      Print("What the folder held before is kept in " + VisibleLine(*kept) + ", with its trash.\n" +
            (direction_ == Direction::kEncrypt ? "It is not encrypted: remove it when you have seen that all is well.\n"
                                               : "From now on the server needs --plain.\n"));
    }
    return status;
  }

  int Finish(const std::string& output, const std::optional<std::string>& kept) const {
    if (line_.json) {
      Json chats = Json::array();
      for (const ChatId& chat : converted_) chats.push_back(chat.str());
      PrintDocument({{"ok", failed_.empty()},
                     {"chats", std::move(chats)},
                     {"failed", failed_},
                     {"output", output},
                     {"kept", kept ? Json(*kept) : Json()}});
    } else {
      Print(CountOf(converted_.size(), "chat") + (direction_ == Direction::kEncrypt ? " sealed in " : " in plain in ") +
            VisibleLine(output) + "\n");
    }
    return failed_.empty() ? kExitOk : kExitFailure;
  }

  const Direction direction_;
  const CommandLine& line_;
  Options options_;
  const Environment& environment_;
  std::vector<ChatId> converted_;
  Json failed_ = Json::array();
};

}  // namespace

Exited RunConvert(const CommandLine& line, const Environment& environment) {
  auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  const auto direction = line.command == "encrypt" ? Direction::kEncrypt : Direction::kDecrypt;
  return Conversion(direction, line, std::move(options), environment).Run();
}

}  // namespace reprise
