#include "app/auto_export.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "base/atomic_write.h"
#include "base/logging.h"
#include "base/public_address.h"
#include "base/text.h"
#include "base/try.h"
#include "domain/codec.h"
#include "domain/transcript/other_formats.h"
#include "domain/transcript/transcript.h"

namespace reprise {
namespace {

struct Status final : HttpResponseHandler {
  void OnHead(int head, const HttpHeaders&) override { status = head; }
  bool OnData(std::string_view) override { return false; }
  int status = 0;
};

// A number of a repeated name that is beyond all that happens.
constexpr int kMostOfOneName = 100;

bool IsAddress(const std::string& place) { return place.starts_with("http://") || place.starts_with("https://"); }

}  // namespace

std::optional<BucketPlace> BucketPlace::Parse(std::string_view place) {
  constexpr std::string_view kScheme = "s3://";
  if (!place.starts_with(kScheme)) return std::nullopt;
  place.remove_prefix(kScheme.size());
  const std::size_t end = std::min(place.find('/'), place.size());
  BucketPlace parsed{.bucket = std::string(place.substr(0, end)), .prefix = std::string(place.substr(end))};
  if (parsed.prefix.starts_with('/')) parsed.prefix.erase(0, 1);
  if (!parsed.prefix.empty() && !parsed.prefix.ends_with('/')) parsed.prefix += '/';
  return parsed;
}

AutoExport::AutoExport(const AutoExportOptions& options, std::vector<std::string> secrets,
                       std::shared_ptr<const LearnedSecrets> learned, const std::optional<BucketOptions>& server,
                       Transport& transport, FileSystem& disk)
    : options_(options),
      secrets_(std::move(secrets)),
      learned_(std::move(learned)),
      transport_(transport),
      disk_(disk) {
  const auto place = BucketPlace::Parse(options_.to);
  if (!place || !server) return;
  BucketOptions bucket = *server;
  bucket.bucket = place->bucket;
  prefix_ = place->prefix;
  bucket_.emplace(std::move(bucket), transport_, give_up_.get_token(), S3Bucket::Limits{.tries = 1});
}

AutoExport::~AutoExport() {
  give_up_.request_stop();
  queue_.reset();
  if (dropped_ > 0) LogWarning("export.auto: interactions were dropped", {{"count", dropped_.load()}});
}

void AutoExport::Add(const Interaction& interaction, const std::string& tenant) noexcept {
  if (options_.to.empty()) return;
  if (waiting_.fetch_add(1) >= kMostWaiting) {
    --waiting_;
    ++dropped_;
    return;
  }
  try {
    queue_->Post([this, tenant, kept = std::make_shared<const Interaction>(interaction)] {
      Result<void> written = Fail(ErrorCode::kInternal, "it ended with an exception");
      if (!give_up_.stop_requested()) Guarded("an export", [&] { written = Write(*kept, tenant); });
      Note(*kept, written);
      --waiting_;
    });
  } catch (const std::exception&) {
    --waiting_;
    ++dropped_;
  }
}

void AutoExport::Note(const Interaction& interaction, const Result<void>& written) {
  const bool works = written.has_value(), is_stopping = give_up_.stop_requested();
  if (works != works_.exchange(works) && !is_stopping) {
    if (works) {
      LogInfo("export.auto works again");
    } else {
      // Of an address the host alone: the rest may be secret.
      LogWarning("export.auto: an interaction could not be written",
                 {{"chat", interaction.chat_id.str()},
                  {"interaction", interaction.id.str()},
                  {"to", IsAddress(options_.to) ? HostOf(options_.to) : std::string_view(options_.to)},
                  {"error", written.error().message},
                  {"detail", written.error().detail}});
    }
  }
  works ? ++written_ : is_stopping ? ++dropped_ : ++failed_;
}

Result<void> AutoExport::Write(const Interaction& interaction, const std::string& tenant) {
  if (!finder_) finder_.emplace(std::move(secrets_));
  const auto learned = learned_->All();  // which other threads add to
  for (const std::string& secret : *learned) finder_->Learn(secret);
  const auto redacted = TRY(finder_->TakenFrom(interaction));
  std::string chat = redacted.chat_id.str();  // an id, from which nothing else is taken
  finder_->TakeFrom(chat);
  const bool is_atif = options_.format == "atif";
  if (!is_atif && !redacted.final_agent_state) return {};  // nothing was said
  const std::string text = is_atif ? FormatAtif({.id = ChatId::Parse(chat).value_or(redacted.chat_id),
                                                 .title = TitleFromMessage(redacted.user_message)},
                                                {{.interaction = redacted}})
                                   : ConversationLine(*redacted.final_agent_state);
  if (IsAddress(options_.to)) return Send(text);
  return WriteTo((tenant.empty() ? "" : PercentEncoded(tenant) + "-") + chat + "-" + redacted.id.str(), redacted, text);
}

// A chat may have the name of one that was deleted, or of which other words were taken out. Nothing is replaced.
Result<void> AutoExport::WriteTo(const std::string& name, const Interaction& interaction, const std::string& text) {
  const std::string end = options_.format == "atif" ? ".json" : ".jsonl";
  std::string created = FormatTimestamp(interaction.created_at);
  std::erase_if(created, [](char c) { return !IsAsciiAlnum(c); });
  for (int number = 0; number < kMostOfOneName; ++number) {
    const std::string more = number == 0   ? ""
                             : number == 1 ? "-" + created
                                           : "-" + created + "-" + std::to_string(number);
    if (!TRY(IsTaken(name + more + end))) return Put(name + more + end, text);
  }
  return Fail(ErrorCode::kConflict, "there are too many of the name " + name);
}

Result<bool> AutoExport::IsTaken(const std::string& name) {
  if (!BucketPlace::Parse(options_.to)) {
    const auto there = disk_.ReadFile(options_.to + "/" + name, 0);
    return there || there.error().code != ErrorCode::kNotFound;
  }
  if (!bucket_) return Fail(ErrorCode::kUnavailable, "there is no bucket");
  const auto page = TRY(bucket_->List(prefix_ + name, ""));
  return std::ranges::any_of(page.objects, [&](const StoredObject& each) { return each.key == prefix_ + name; });
}

Result<void> AutoExport::Put(const std::string& name, const std::string& text) {
  if (bucket_) return bucket_->Put(prefix_ + name, text);
  TRY(CreateDirectories(disk_, options_.to));
  return ReplaceFile(disk_, options_.to + "/" + name, text);
}

Result<void> AutoExport::Send(std::string body) {
  HttpRequest request;
  request.method = "POST";
  request.url = options_.to;
  request.headers = options_.headers;
  request.body = std::move(body);
  request.headers.emplace_back("Content-Type", options_.format == "atif" ? "application/json" : "application/jsonl");
  request.total_timeout = std::chrono::seconds(10);
  Status answer;
  TRY(transport_.Perform(std::move(request), answer, give_up_.get_token()));
  if (answer.status >= 200 && answer.status < 300) return {};
  return Fail(ErrorCode::kUnavailable, "the answer has the status " + std::to_string(answer.status));
}

void AutoExport::Collect(std::vector<Metric>& metrics) const {
  const auto add = [&](std::string_view name, std::string_view help, const std::atomic<std::uint64_t>& count) {
    metrics.push_back({.name = name,
                       .type = Metric::Type::kCounter,
                       .unit = "{interaction}",
                       .help = help,
                       .points = {{.value = static_cast<double>(count.load())}}});
  };
  add("reprise.export.written", "Interactions that export.auto has written.", written_);
  add("reprise.export.failed", "Interactions that export.auto could not write.", failed_);
  add("reprise.export.dropped", "Interactions that export.auto dropped: too many waited, or the server stopped.",
      dropped_);
}

}  // namespace reprise
