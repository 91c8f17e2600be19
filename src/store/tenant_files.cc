#include "store/tenant_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/try.h"
#include "crypto/jwe.h"
#include "domain/codec.h"
#include "domain/json_reader.h"
#include "reprise/timestamp.h"
#include "store/file_names.h"
#include "store/record.h"
#include "store/store_errors.h"

namespace reprise {

namespace {

constexpr int kGrantsVersion = 1;
constexpr std::string_view kGrantsType = "reprise/grants";
constexpr std::uint64_t kMaxGrantsFile = 256u << 20;
constexpr std::chrono::seconds kCountsKept{60};  // how long uses are counted in memory only

tl::unexpected<Error> Damaged(std::string_view kind, std::string_view what) {
  return Fail(LoneRecordDamage(GrantsFile("").substr(1), kind, what));
}

// Grows with each change of the file. At least the time, so that it grows even if the head was lost.
std::int64_t GenerationAfter(std::int64_t last) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::max<std::int64_t>(last + 1, std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

// nullopt: there is no head yet.
Result<std::optional<std::int64_t>> ReadGeneration(FileSystem& file_system, const std::string& root,
                                                   const KeySet* keys) {
  const std::string path = GrantsHeadFile(root);
  const auto text = TRY(ReadHeadFile(file_system, path, kGrantsHeadType, keys));
  if (!text) return std::optional<std::int64_t>();
  const auto damaged = [&](std::string_view kind, std::string_view what) {
    return Fail(LoneRecordDamage(path.substr(root.size() + 1), kind, what));
  };
  const auto json = ParseJson(*text);
  if (!json) return damaged("auth", "its content is not JSON");
  JsonReader reader(*json, "head of the grants");
  if (reader.Integer("schema") != kGrantsVersion && !reader.error()) {
    return damaged("version", "it was written by a version of this program that is not known here");
  }
  const std::int64_t generation = reader.Integer("generation");
  if (reader.error()) return damaged("auth", reader.error()->message);
  return std::optional(generation);
}

Result<void> WriteGeneration(FileSystem& file_system, const std::string& root, const KeySet* keys,
                             std::int64_t generation) {
  return WriteHeadFile(file_system, GrantsHeadFile(root), kGrantsHeadType,
                       DumpJson({{"schema", kGrantsVersion}, {"generation", generation}}), keys);
}

struct Content {
  std::vector<StandingGrant> grants;
  std::int64_t generation = 0;  // 0: written before there were generations
};

Result<StandingGrant> GrantFrom(const Json& json) {
  JsonReader reader(json, "grant");
  StandingGrant grant{
      .grant = ReadGrant(reader), .tool_input = reader.String("tool_input"), .created_at = reader.Time("created_at")};
  if (reader.error()) return Damaged("auth", reader.error()->message);
  return grant;
}

Json Members(const StandingGrant& grant) {
  Json json = ToJson(grant);
  json.erase("id");
  return json;
}

Result<Content> Parse(std::string_view text) {
  const auto json = ParseJson(text);
  if (!json) return Damaged("auth", "its content is not JSON");
  JsonReader reader(*json, "list of grants");
  if (reader.Integer("schema") != kGrantsVersion && !reader.error()) {
    return Damaged("version", "it was written by a version of this program that is not known here");
  }
  Content content;
  if (reader.Find("generation") != nullptr) content.generation = reader.Integer("generation");
  if (const Json* listed = reader.Array("grants")) {
    for (const Json& each : *listed) {
      content.grants.push_back(TRY(GrantFrom(each)));
    }
  }
  if (reader.error()) return Damaged("auth", reader.error()->message);
  return content;
}

Result<Content> Read(FileSystem& file_system, const std::string& root, const KeySet* keys) {
  const auto text = file_system.ReadFile(GrantsFile(root), kMaxGrantsFile);
  if (!text && !IsNotFound(text.error())) return Fail(text.error());
  const auto generation = TRY(ReadGeneration(file_system, root, keys));
  if (!text && generation.value_or(0) == 0) return Content();
  if (!text) return Damaged("missing", "the file is gone");
  auto content = TRY(OpenLoneRecord(*text, GrantsFile("").substr(1), kGrantsType, kGrantsVersion, keys)
                         .and_then([](const auto& plain) { return Parse(plain); }));
  if (!generation && content.generation > 0) {
    return Fail(LoneRecordDamage(GrantsHeadFile("").substr(1), "missing", "the file is gone"));
  }
  if (content.generation < generation.value_or(0)) {
    return Damaged("rollback", "it is not the version that was stored last");
  }
  return content;
}

}  // namespace

bool Renew(StandingGrant& there, const StandingGrant& added) {
  const bool is_same = there.grant.expires_at == added.grant.expires_at && there.grant.means == added.grant.means;
  there.grant.expires_at = added.grant.expires_at;
  there.grant.means = added.grant.means;
  return !is_same;
}

std::string StandingGrantText(const StandingGrant& grant) { return DumpJson(Members(grant)); }

Result<StandingGrant> ParseStandingGrant(std::string_view text) {
  const auto json = ParseJson(text);
  if (!json) return Damaged("auth", "a grant is not JSON");
  return GrantFrom(*json);
}

Result<std::vector<StandingGrant>> ReadGrantFile(FileSystem& file_system, const std::string& root, const KeySet* keys) {
  return Read(file_system, root, keys).map([](Content content) { return std::move(content.grants); });
}

Result<void> WriteGrantFile(FileSystem& file_system, const std::string& root, const KeySet* keys,
                            const std::vector<StandingGrant>& grants) {
  if (grants.size() > kMaxStandingGrants) return TooManyGrants();
  // The head exists before the first file that names a generation, and is written after each file. A crash in between
  // leaves a file that is newer than its head, which is in order.
  auto known = ReadGeneration(file_system, root, keys);
  if (!known && known.error().code != ErrorCode::kCorruption) return Fail(std::move(known.error()));
  if (!known) {
    const std::string head = GrantsHeadFile(root);
    TRY(file_system.Rename(head, DamagedHeadFile(head)));
  }
  if (!known || !*known) {
    TRY(WriteGeneration(file_system, root, keys, 0));
  }
  std::int64_t last = known ? known->value_or(0) : 0;
  if (const auto there = Read(file_system, root, keys)) last = std::max(last, there->generation);
  const std::int64_t generation = GenerationAfter(last);
  Json listed = Json::array();
  for (const StandingGrant& each : grants) listed.push_back(Members(each));
  Result<std::string> text =
      DumpJson({{"schema", kGrantsVersion}, {"generation", generation}, {"grants", std::move(listed)}});
  if (keys != nullptr) text = SealJwe({{"typ", kGrantsType}, {"ver", kGrantsVersion}}, *text, *keys);
  if (!text) return Fail(text.error());
  TRY(ReplaceFile(file_system, GrantsFile(root), *text));
  return file_system.SyncDirectory(root).and_then([&] { return WriteGeneration(file_system, root, keys, generation); });
}

Result<void> FileGrantStore::ReadOnce() {
  if (grants_) return {};
  auto read = ReadGrantFile(file_system_, root_, keys_.get());
  if (read) return grants_ = *std::move(read), Result<void>();
  if (!std::exchange(told_, true)) {
    LogError("the grants for always cannot be read and do not count", {{"error", read.error().message}});
  }
  return Fail(std::move(read.error()));
}

Result<void> FileGrantStore::Write(std::vector<StandingGrant> grants) {
  std::erase_if(grants, [now = Now()](const StandingGrant& each) { return each.grant.has_expired(now); });
  auto written = WriteGrantFile(file_system_, root_, keys_.get(), grants);
  if (written) {
    grants_ = std::move(grants);
    uncounted_ = 0;
    counted_at_ = std::chrono::steady_clock::now();
  } else {
    grants_.reset();  // the file may be the old one or the new one
  }
  return written;
}

Result<bool> FileGrantStore::Add(const StandingGrant& grant) {
  const MutexLock lock(mutex_);
  std::vector<StandingGrant> grants;
  if (auto read = ReadOnce(); read) {
    grants = *grants_;
  } else if (read.error().code != ErrorCode::kCorruption) {
    return Fail(std::move(read.error()));
  } else {  // the damaged file is kept for people
    auto aside = file_system_.Rename(GrantsFile(root_), DamagedGrantsFile(root_));
    if (!aside && !IsNotFound(aside.error())) return Fail(std::move(aside.error()));
  }
  const std::string id = GrantId(grant.grant);
  const auto same = std::ranges::find_if(grants, [&](const StandingGrant& each) { return GrantId(each.grant) == id; });
  const bool was_there = same != grants.end() && !same->grant.has_expired(Now());
  if (was_there && !Renew(*same, grant)) return false;
  if (!was_there) grants.push_back(grant);
  return Write(std::move(grants)).map([&] { return !was_there; });
}

Result<void> FileGrantStore::Remove(std::string_view id) {
  const MutexLock lock(mutex_);
  TRY(ReadOnce());
  std::vector<StandingGrant> grants = *grants_;
  if (std::erase_if(grants, [&](const StandingGrant& each) { return GrantId(each.grant) == id; }) == 0) {
    return NoSuchGrant();
  }
  return Write(std::move(grants));
}

Result<std::vector<StandingGrant>> FileGrantStore::List() {
  const MutexLock lock(mutex_);
  TRY(ReadOnce());
  std::vector<StandingGrant> valid = *grants_;
  std::erase_if(valid, [now = Now()](const StandingGrant& each) { return each.grant.has_expired(now); });
  return valid;
}

std::vector<Grant> FileGrantStore::For(const Grant& call) {
  const MutexLock lock(mutex_);
  std::vector<Grant> found;
  if (call.terms_digest.empty() || !ReadOnce()) return found;
  for (const StandingGrant& each : *grants_) {
    if (BearsOn(each.grant, call, Now())) found.push_back(each.grant);
  }
  return found;
}

void FileGrantStore::NoteUse(const std::vector<std::string>& ids) {
  const MutexLock lock(mutex_);
  if (!ReadOnce()) return;
  for (StandingGrant& each : *grants_) {
    if (std::ranges::find(ids, GrantId(each.grant)) == ids.end()) continue;
    ++each.grant.uses;
    each.grant.used_at = Now();
    ++uncounted_;
  }
  // Writing each time would cost each call two syncs.
  if (std::chrono::steady_clock::now() - counted_at_ >= kCountsKept) WriteCounts();
}

void FileGrantStore::WriteCounts() {
  if (!grants_ || uncounted_ == 0) return;
  // A failure is not reported, because the folder has worse problems then; the counts since the last write are lost.
  const std::vector<StandingGrant> grants = *grants_;
  if (!WriteGrantFile(file_system_, root_, keys_.get(), grants)) return grants_.reset();
  uncounted_ = 0;
  counted_at_ = std::chrono::steady_clock::now();
}

FileGrantStore::~FileGrantStore() {
  const MutexLock lock(mutex_);
  WriteCounts();
}

namespace {

constexpr std::uint64_t kMostBytes = 4096;

std::chrono::sys_days DayNow() { return std::chrono::floor<std::chrono::days>(Now()); }

}  // namespace

DailyUsageFile::DailyUsageFile(FileSystem& file_system, std::string path)
    : file_system_(file_system), path_(std::move(path)), day_(DayNow()) {
  const auto text = file_system_.ReadFile(path_, kMostBytes);
  if (!text && IsNotFound(text.error())) return;
  const auto json = text ? ParseJson(*text) : Fail(text.error());
  const auto day = json ? ParseTimestamp(TextMember(*json, "day")) : Fail(json.error());
  if (!day || !MemberOf(*json, "tokens").is_number_unsigned()) {
    LogWarning("today's use of tokens is unknown; it is counted from now on");
  } else if (std::chrono::floor<std::chrono::days>(*day) == day_) {
    tokens_ = MemberOf(*json, "tokens").get<std::int64_t>();
  }
}

void DailyUsageFile::BeginDay() {
  const auto today = DayNow();
  if (today == day_) return;
  day_ = today;
  tokens_ = 0;
}

std::int64_t DailyUsageFile::Today() {
  const MutexLock lock(mutex_);
  BeginDay();
  return tokens_;
}

Result<void> DailyUsageFile::Add(std::int64_t tokens) {
  const MutexLock lock(mutex_);
  BeginDay();
  tokens_ += tokens;
  return ReplaceFile(file_system_, path_, DumpJson({{"day", FormatTimestamp(day_)}, {"tokens", tokens_}}) + "\n",
                     Durability::kUnsynced);
}

}  // namespace reprise
