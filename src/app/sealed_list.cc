#include "app/sealed_list.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "approval/audit_lines.h"
#include "base/logging.h"
#include "base/try.h"
#include "store/record.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxListFile = 4 << 20, kMostInList = 50;
constexpr int kListVersion = 1;

std::string FileOf(const SealedList::Kind& kind, const std::string& data_dir) { return data_dir + "/" + kind.file; }

// `keys` null: it is plain.
Result<Json> ReadList(FileSystem& disk, const SealedList::Kind& kind, const std::string& data_dir, const KeySet* keys) {
  const auto text = disk.ReadFile(FileOf(kind, data_dir), kMaxListFile);
  if (!text && IsNotFound(text.error())) return Json::object();
  if (!text) return Fail(text.error());
  auto json = TRY(ParseJson(TRY(OpenLoneRecord(*text, kind.file, kind.type, kListVersion, keys))));
  if (MemberOf(json, "schema") != kListVersion) {
    return Fail(ErrorCode::kCorruption, "another version of Reprise wrote it");
  }
  const Json& entries = MemberOf(json, kind.member);
  if (!entries.is_object()) return Fail(ErrorCode::kCorruption, std::string("it has no ") + kind.member);
  return entries;
}

Result<void> WriteList(FileSystem& disk, const SealedList::Kind& kind, const std::string& data_dir, const KeySet* keys,
                       Json entries) {
  return WriteHeadFile(disk, FileOf(kind, data_dir), kind.type,
                       DumpJson({{"schema", kListVersion}, {kind.member, std::move(entries)}}), keys);
}

}  // namespace

SealedList::SealedList(const Kind& kind, Place place) : kind_(kind), place_(std::move(place)) {
  auto kept = ReadList(place_.disk, kind_, place_.data_dir, place_.keys.get());
  if (!kept) {
    unread_ = MakeError(ErrorCode::kConflict,
                        std::string("the ") + kind_.words + " in " + FileOf(kind_, place_.data_dir) +
                            " cannot be read (" + kept.error().message +
                            "), and are not written over; bring the file or its key back, or remove the file, and "
                            "restart the server");
    LogWarning("what people have set in the page cannot be read",
               {{"list", kind_.words}, {"detail", kept.error().message}});
  }
  if (kept) entries_ = *std::move(kept);
}

Result<void> SealedList::CheckWritable() const {
  if (unread_) return Fail(*unread_);
  return {};
}

Result<void> SealedList::CheckChange(const Json& entries) const {
  TRY(CheckWritable());
  if (entries.size() > kMostInList && entries.size() > entries_.size()) {
    return Fail(Reason::kInvalidMember, std::string("there are too many ") + kind_.words);
  }
  return {};
}

Result<void> SealedList::Write(Json entries) {
  TRY(CheckChange(entries));
  TRY(WriteList(place_.disk, kind_, place_.data_dir, place_.keys.get(), entries));
  entries_ = std::move(entries);
  return {};
}

Result<void> SealedList::Change(AuditEntry::Event event, const std::string& name, const std::string& digest,
                                Json entries) {
  TRY(CheckChange(entries));  // no line for what is refused
  if (place_.audit != nullptr) TRY(place_.audit->Append(audit::ServerChanged(event, name, digest)));
  return Write(std::move(entries));
}

Result<void> CopySealedLists(FileSystem& disk, const std::string& from, const KeySet* opened_by, const std::string& to,
                             const KeySet* sealed_by) {
  for (const SealedList::Kind& kind : std::array{kProvidersList, kServersList, kRulesList}) {
    auto entries = ReadList(disk, kind, from, opened_by);
    if (!entries) {
      return Fail(entries.error().code, std::string("the ") + kind.words + " in " + FileOf(kind, from) +
                                            " cannot be read: " + entries.error().message);
    }
    if (!entries->empty()) TRY(WriteList(disk, kind, to, sealed_by, *std::move(entries)));
  }
  return {};
}

}  // namespace reprise
