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

// Reads documents in processes of their own, each in a sandbox with nothing but the system and the program that reads:
// pdftotext for PDF (a program and no library: Poppler's licence is not ours), reprise-document for the others. Bounded
// are their time, memory and output, and how many run at once. What was read is kept in memory, by the digest of the
// file; so is that a file cannot be read, for a while.
class SandboxedReader final : public DocumentReader {
 public:
  struct Options {
    std::chrono::milliseconds timeout{20'000};  // of one document
    std::string search_path{};                  // where pdftotext is looked for, as PATH has it
  };
  explicit SandboxedReader(Options options);

  Result<std::shared_ptr<const std::string>> Read(const StoredFile& file, const std::stop_token& stop) override {
    return ReadFor({}, file, stop);
  }
  // A person has kMostOfOne documents read at a time. Half of all that may be read at once is for those of whom none
  // is.
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
  const std::string pdf_program_, office_program_;  // empty: not there
  const Sandbox sandbox_;

  Mutex mutex_;
  std::condition_variable_any turn_;
  std::map<std::string, std::size_t> running_ GUARDED_BY(mutex_);  // of whom
  std::list<Known> known_ GUARDED_BY(mutex_);                      // what was asked for last comes first
  std::size_t known_bytes_ GUARDED_BY(mutex_) = 0;
};

// The reader as one person has it.
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

// Where the programs are; empty: not there. For people who look whether all is well, too.
std::string FindPdfReader(const std::string& search_path);
std::string FindOfficeReader();

}  // namespace reprise
