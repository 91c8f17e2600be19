#include "store/folder_keys.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/try.h"
#include "crypto/jwe.h"
#include "store/chat_files.h"
#include "store/file_names.h"
#include "store/record.h"

namespace reprise {
namespace {

constexpr int kNoteSchema = 1;
constexpr std::uint64_t kMaxNote = 1 << 20;

std::optional<std::set<std::string>> Names(const Json& json, const char* member) {
  std::set<std::string> names;
  const auto list = json.find(member);
  if (list == json.end() || !list->is_array()) return std::nullopt;
  for (const Json& name : *list) {
    if (!name.is_string()) return std::nullopt;
    names.insert(name.get<std::string>());
  }
  return names;
}

// nullopt: there is none that can be read, which is no damage; it is made again from the chats.
std::optional<FolderKeys> ReadNote(const std::string& root, FileSystem& file_system) {
  const auto text = file_system.ReadFile(SealedByFile(root), kMaxNote);
  if (!text) return std::nullopt;
  const auto json = ParseJson(*text);
  if (!json || !json->is_object() || json->value("schema", Json()) != kNoteSchema) return std::nullopt;
  const auto plain = json->find("plain");
  auto sealing = Names(*json, "keys"), given_up = Names(*json, "given_up");
  if (plain == json->end() || !plain->is_boolean() || !sealing || !given_up) return std::nullopt;
  return FolderKeys{.plain = plain->get<bool>(), .sealing = *std::move(sealing), .given_up = *std::move(given_up)};
}

std::string NoteText(const FolderKeys& note) {
  return DumpJson(Json{
             {"schema", kNoteSchema}, {"plain", note.plain}, {"keys", note.sealing}, {"given_up", note.given_up}}) +
         "\n";
}

// What a chat is sealed by: a key's id, "" if it is plain, nullopt if nothing of it tells.
class ChatLook {
 public:
  ChatLook(const std::string& root, FileSystem& file_system)
      : root_(root), files_(root, MakeRecordFormat(nullptr), file_system), file_system_(file_system) {}

  Result<std::vector<ChatId>> Chats() const {
    auto chats = files_.ListChats();
    if (!chats && chats.error().code == ErrorCode::kNotFound) return std::vector<ChatId>();
    return chats;
  }
  std::optional<std::string> SealedBy(const ChatId& chat) const {
    if (auto by = FileSealedBy(ChatFile(root_, chat))) return by;
    const auto listed = files_.ListInteractions(chat);
    if (!listed) return std::nullopt;
    for (const std::uint32_t number : listed->checkpoints) {
      if (auto by = FileSealedBy(InteractionFile(root_, chat, InteractionId::FromNumber(number)))) return by;
    }
    for (const std::uint32_t number : listed->journals) {
      if (auto by = FileSealedBy(JournalPath(root_, chat, InteractionId::FromNumber(number)))) return by;
    }
    return std::nullopt;
  }

 private:
  std::optional<std::string> FileSealedBy(const std::string& path) const {
    const auto text = file_system_.ReadFile(path, kMaxRecordBytes);
    return text ? reprise::SealedBy(*text) : std::nullopt;
  }

  const std::string& root_;
  const ChatFiles files_;
  FileSystem& file_system_;
};

bool Has(const KeySet* keys, const std::string& kid) { return keys != nullptr && keys->Find(kid) != nullptr; }

std::string Count(std::size_t chats) { return std::to_string(chats) + (chats == 1 ? " chat" : " chats"); }
std::string AreOrIs(std::size_t chats) { return chats == 1 ? " is " : " are "; }

tl::unexpected<Error> Refused(std::string reason, std::string message) {
  return Fail(Error{.code = ErrorCode::kForbidden, .reason = std::move(reason), .message = std::move(message)});
}

}  // namespace

std::optional<std::string> SealedBy(std::string_view record) {
  if (auto kid = KeyIdOf(record)) return kid;
  const std::string_view first_line = record.substr(0, record.find('\n'));  // a journal's
  if (auto kid = KeyIdOf(first_line)) return kid;
  const auto json = ParseJson(first_line, 2 * kMaxJsonDepth);
  return json && json->is_object() && !json->contains("ciphertext") ? std::optional<std::string>("") : std::nullopt;
}

void CountChat(FolderKeys& found, const std::string& sealed_by, const KeySet* keys) {
  ++(sealed_by.empty() ? found.plain_chats : found.sealed_chats);
  if (sealed_by.empty()) return;
  if (Has(keys, sealed_by)) {
    found.sealing.insert(sealed_by);
  } else if (!found.given_up.contains(sealed_by)) {
    ++found.missing[sealed_by];
  }
}

Result<FolderKeys> ReadFolderKeys(const std::string& root, FolderMode mode, const KeySet* keys,
                                  FileSystem& file_system) {
  const auto note = ReadNote(root, file_system);
  FolderKeys found = note.value_or(FolderKeys{});
  bool known = note.has_value() && found.plain == (mode == FolderMode::kPlain);
  for (const std::string& kid : found.sealing) known = known && Has(keys, kid);
  if (known) return found;

  const ChatLook look(root, file_system);
  const auto chats = TRY(look.Chats());
  found.sealing.clear();
  found.looked = true;
  for (const ChatId& chat : chats) {
    const auto by = look.SealedBy(chat);
    if (by) CountChat(found, *by, keys);
  }
  return found;
}

std::set<std::string> GivenUpKeys(const std::string& root, FileSystem& file_system) {
  return ReadNote(root, file_system).value_or(FolderKeys{}).given_up;
}

Result<void> CheckFolderKeys(const FolderKeys& found, FolderMode mode, const std::string& root,
                             const std::string& key_file) {
  if (mode == FolderMode::kPlain) {
    if (found.sealed_chats == 0 || found.plain_chats > 0) return {};
    return Refused("sealed_folder", Count(found.sealed_chats) + " in " + root + AreOrIs(found.sealed_chats) +
                                        "sealed: leave --plain out, or `reprise decrypt --all --in-place` first");
  }
  if (found.plain_chats > 0 && found.sealed_chats == 0) {
    return Refused("plain_folder", Count(found.plain_chats) + " in " + root + AreOrIs(found.plain_chats) +
                                       "stored unencrypted: give --plain, or `reprise encrypt --all --in-place` first");
  }
  if (found.missing.empty()) return {};
  std::size_t chats = 0;
  std::string kids;
  for (const auto& [kid, count] : found.missing) {
    chats += count;
    kids += (kids.empty() ? "" : ", ") + kid;
  }
  return Refused("missing_key",
                 Count(chats) + " in " + root + AreOrIs(chats) + "sealed with " + kids + ", which is not in " +
                     key_file + ": put the key file back (or name it with --key-file), or give those chats up with " +
                     "`reprise serve --new-key`");
}

Result<void> NoteFolderKeys(const FolderKeys& found, const std::string& root, const KeySet* keys,
                            FileSystem& file_system) {
  FolderKeys note{.plain = keys == nullptr, .sealing = found.sealing, .given_up = {}};
  if (keys != nullptr) note.sealing.insert(keys->current().kid);
  for (const std::string& kid : found.given_up) {
    if (!Has(keys, kid)) note.given_up.insert(kid);
  }
  if (keys != nullptr) {
    for (const auto& [kid, count] : found.missing) note.given_up.insert(kid);
  }
  const std::string text = NoteText(note);
  const auto there = file_system.ReadFile(SealedByFile(root), kMaxNote);
  if (there && *there == text) return {};
  // Of a folder without chats the first one says nothing that would be missed after a power loss.
  const bool is_new = !there && found.plain_chats + found.sealed_chats == 0 && note.given_up.empty();
  if (is_new) return ReplaceFile(file_system, SealedByFile(root), text, Durability::kUnsynced);
  return ReplaceFile(file_system, SealedByFile(root), text).and_then([&] { return file_system.SyncDirectory(root); });
}

}  // namespace reprise
