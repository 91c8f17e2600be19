#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/secret_finder.h"
#include "base/learned_secrets.h"
#include "base/queues.h"
#include "remote/s3/s3_bucket.h"
#include "reprise/file_system.h"
#include "reprise/interaction.h"
#include "reprise/options.h"
#include "reprise/telemetry.h"
#include "reprise/transport.h"

namespace reprise {

// The bucket and the beginning of objects' names in "s3://BUCKET/PREFIX". nullopt: it is another place.
struct BucketPlace {
  std::string bucket, prefix;
  static std::optional<BucketPlace> Parse(std::string_view place);
};

// Writes each finished interaction to a folder, a bucket or an HTTP address, without secrets (`export.auto`,
// docs/share.md). Fire and forget: a few wait in a queue with a thread of its own, and those without room and those
// that are not taken are dropped and counted. Thread-safe.
class AutoExport {
 public:
  // `secrets` as of SecretsOf, and those that are learned later; `server` has the address and the keys for a bucket.
  // The references must outlive this.
  AutoExport(const AutoExportOptions& options, std::vector<std::string> secrets,
             std::shared_ptr<const LearnedSecrets> learned, const std::optional<BucketOptions>& server,
             Transport& transport, FileSystem& disk);
  // Gives up what waits, and logs how many were dropped.
  ~AutoExport();
  AutoExport(const AutoExport&) = delete;

  // Does not wait. `tenant`: whose chat it is, as TenantOf says; empty: the operator's. No effect if it is off.
  void Add(const Interaction& interaction, const std::string& tenant) noexcept;
  void Collect(std::vector<Metric>& metrics) const;

 private:
  static constexpr std::uint64_t kMostWaiting = 64;
  Result<void> Write(const Interaction& interaction, const std::string& tenant);
  void Note(const Interaction& interaction, const Result<void>& written);  // counts it, and logs what changed
  Result<void> Send(std::string body);
  // `name` without its ending, which gets something more if there is one already.
  Result<void> WriteTo(const std::string& name, const Interaction& interaction, const std::string& text);
  Result<bool> IsTaken(const std::string& name);
  Result<void> Put(const std::string& name, const std::string& text);

  const AutoExportOptions options_;
  std::vector<std::string> secrets_;
  std::optional<SecretFinder> finder_{};  // of the queue's thread, which makes it of secrets_
  const std::shared_ptr<const LearnedSecrets> learned_;
  Transport& transport_;
  FileSystem& disk_;
  std::stop_source give_up_;
  std::optional<S3Bucket> bucket_{};  // nullopt: options_.to is none
  std::string prefix_{};              // of the objects' names
  std::atomic<std::uint64_t> waiting_{0}, written_{0}, failed_{0}, dropped_{0};
  std::atomic<bool> works_{true};                    // as last logged
  std::optional<SerialQueue> queue_{std::in_place};  // last
};

}  // namespace reprise
