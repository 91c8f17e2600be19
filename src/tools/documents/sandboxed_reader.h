#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "reprise/document_reader.h"
#include "tools/shell/sandbox.h"

namespace reprise {

// Reads documents in separate processes, each in a sandbox with only the system and the reading program: pdftotext for
// PDF (run as a program because of Poppler's licence), reprise-document for others. Limits their time, memory, output
// and number. Caches texts in memory by the file's digest, and for a while also failures.
class SandboxedReader final : public DocumentReader {
 public:
  struct Options {
    std::chrono::milliseconds timeout{20'000};  // of one document
    std::string search_path{};                  // a PATH to search for pdftotext
  };
  explicit SandboxedReader(Options options);

  Result<std::shared_ptr<const std::string>> Read(const StoredFile& file, const std::stop_token& stop) override {
    return ReadFor({}, file, stop);
  }
  // Reads at most kMostOfOne documents at a time for each person. Half of all slots is reserved for people without a
  // running read.
  Result<std::shared_ptr<const std::string>> ReadFor(const std::string& whose, const StoredFile& file,
                                                     const std::stop_token& stop);

 private:
  using Text = Result<std::shared_ptr<const std::string>>;
  struct Known {
    std::string digest;
    Text text;
    std::chrono::steady_clock::time_point until;
  };

  Text ReadNow(const StoredFile& file, const std::stop_token& stop);
  Text Run(std::vector<std::string> argv, const StoredFile& file, const std::stop_token& stop) const;
  bool TakeTurn(const std::string& whose, const std::stop_token& stop);
  std::optional<Text> Recall(const std::string& digest);
  void Remember(const std::string& digest, const Text& text);

  const Options options_;
  const std::string pdf_program_, office_program_;  // empty if missing
  const Sandbox sandbox_;

  Mutex mutex_;
  std::condition_variable_any turn_;
  std::map<std::string, std::size_t> running_ GUARDED_BY(mutex_);  // by person
  std::list<Known> known_ GUARDED_BY(mutex_);                      // most recently used first
  std::size_t known_bytes_ GUARDED_BY(mutex_) = 0;
};

// The reader for one person.
class DocumentShare final : public DocumentReader {
 public:
  DocumentShare(SandboxedReader& reader, std::string whose) : reader_(reader), whose_(std::move(whose)) {}
  Result<std::shared_ptr<const std::string>> Read(const StoredFile& file, const std::stop_token& stop) override {
    return reader_.ReadFor(whose_, file, stop);
  }

 private:
  SandboxedReader& reader_;
  const std::string whose_;
};

// The paths of the programs; empty if missing. Also for diagnosis.
std::string FindPdfReader(const std::string& search_path);
std::string FindOfficeReader();

}  // namespace reprise
