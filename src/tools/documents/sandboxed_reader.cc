#include "tools/documents/sandboxed_reader.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/logging.h"
#include "base/path.h"
#include "base/text.h"
#include "domain/file_kind.h"
#include "tools/own_program.h"
#include "tools/shell/command_runner.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxText = 4u << 20;  // of a document; reprise-document cuts there itself, and adds its note
constexpr std::string_view kCut = "\n[cut here: the document has more text than 4 MiB]\n";
constexpr std::size_t kMaxKnownBytes = 32u << 20;  // for all texts kept
constexpr std::size_t kMostKnown = 200;
constexpr std::size_t kMostOfOne = 2, kMostAtOnce = 8;
constexpr std::uint64_t kMemory = 768ull << 20;  // per process
constexpr int kUnreadable = 3;                   // exit status of reprise-document, which prints the reason
constexpr std::chrono::minutes kRetryAfter{10};
constexpr std::chrono::hours kForEver{24 * 365};

Error UnreadableDocument(std::string message) { return Refused(Reason::kDocumentUnreadable, std::move(message)); }
Error MissingReader(std::string message) { return Refused(Reason::kDocumentReaderMissing, std::move(message)); }

std::string ProgramAt(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error || ::access(real.c_str(), X_OK) != 0 ? std::string() : real.string();
}

Sandbox::Options SandboxFor(const std::string& pdf_program, const std::string& office_program) {
  return {.workspace = {}, .readable_paths = {pdf_program, office_program}, .limits = {.processes = 64, .tmp_mb = 16}};
}

// Explains an exit status of pdftotext(1).
std::string WhyNotPdf(int status) {
  if (status == 3) return "it does not allow its text to be copied";
  return "it is damaged, or encrypted with a password";
}

}  // namespace

std::string FindPdfReader(const std::string& search_path) {
  for (const fs::path& folder : SearchFolders(search_path)) {
    if (!folder.is_absolute()) continue;
    if (const fs::path program = folder / "pdftotext"; ::access(program.c_str(), X_OK) == 0) return ProgramAt(program);
  }
  return {};
}

std::string FindOfficeReader() { return FindOwnProgram("reprise-document"); }

SandboxedReader::SandboxedReader(Options options)
    : options_(std::move(options)),
      pdf_program_(FindPdfReader(options_.search_path)),
      office_program_(FindOfficeReader()),
      sandbox_(SandboxFor(pdf_program_, office_program_)) {}

Result<std::shared_ptr<const std::string>> SandboxedReader::ReadFor(const std::string& whose, const StoredFile& file,
                                                                    const std::stop_token& stop) {
  if (auto known = Recall(file.info.digest)) return *std::move(known);
  if (!TakeTurn(whose, stop)) return Fail(ErrorCode::kCancelled, "cancelled");
  const std::shared_ptr<void> turn(nullptr, [this, &whose](void*) {
    const MutexLock lock(mutex_);
    if (const auto own = running_.find(whose); --own->second == 0) running_.erase(own);
    turn_.notify_all();
  });
  if (auto known = Recall(file.info.digest)) return *std::move(known);  // read meanwhile
  Text text = ReadNow(file, stop);
  Remember(file.info.digest, text);
  return text;
}

SandboxedReader::Text SandboxedReader::ReadNow(const StoredFile& file, const std::stop_token& stop) {
  const FileNature nature = NatureOf(file.info.filename, file.info.mime_type, file.content);
  std::vector<std::string> argv;
  switch (nature.kind) {
    case FileKind::kPdf:
      if (pdf_program_.empty())
        return Fail(MissingReader("pdftotext is not installed (Debian's package poppler-utils)"));
      argv = {pdf_program_, "-q", "-enc", "UTF-8", "-", "-"};
      break;
    case FileKind::kOffice:
    case FileKind::kHtml:
    case FileKind::kEncodedText:
      if (office_program_.empty())
        return Fail(MissingReader("reprise-document is not installed, which belongs to Reprise"));
      argv = {office_program_, nature.kind == FileKind::kHtml          ? "html"
                               : nature.kind == FileKind::kEncodedText ? "text"
                                                                       : "office"};
      break;
    case FileKind::kText:
    case FileKind::kImage:
    case FileKind::kAudio:
    case FileKind::kOther:
      return Fail(UnreadableDocument("there is no text to be read in a file of this type"));
  }
  if (const Sandbox::State state = sandbox_.state(); !state.missing.empty()) {
    return Fail(
        MissingReader("documents are read in a sandbox, and there is none that is whole here: " + state.missing));
  }
  return Run(std::move(argv), file, stop);
}

SandboxedReader::Text SandboxedReader::Run(std::vector<std::string> argv, const StoredFile& file,
                                           const std::stop_token& stop) const {
  const bool is_pdf = argv.front() == pdf_program_;
  Command command{.argv = std::move(argv),
                  .environment = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "HOME=" + sandbox_.home()},
                  .directory = "/",
                  .input = file.content,
                  .memory_bytes = kMemory,
                  .file_bytes = 1u << 20,
                  .quiet = true,
                  .confined = true};
  command = sandbox_.Confined(std::move(command));
  std::string text;
  const CommandLimits limits{
      .timeout = options_.timeout, .max_output_bytes = 0, .on_bytes = [&](std::string_view more) {
        text += more.substr(0, kMaxText + kCut.size() + 1 - text.size());
      }};
  const auto result = RunCommand(command, limits, stop);
  if (!result) return Fail(MissingReader("it could not be read: " + result.error().message));
  switch (result->end) {
    case CommandResult::End::kCancelled:
      return Fail(ErrorCode::kCancelled, "cancelled");
    case CommandResult::End::kTimedOut:
      LogWarning("a document took too long to read", {{"file", file.info.id.str()}, {"bytes", file.info.size_bytes}});
      return Fail(Reason::kDocumentTimeout,
                  "it takes longer than " + std::to_string(options_.timeout.count() / 1000) + " seconds to read");
    case CommandResult::End::kSignalled:
      return Fail(UnreadableDocument("the program that reads it has crashed over it"));
    case CommandResult::End::kExited:
      break;
  }
  if (result->status == 0) {
    if (text.size() > kMaxText + kCut.size()) {
      text.resize(kMaxText);
      text.resize(kMaxText - IncompleteUtf8Tail(text));
      text += kCut;
    }
    return std::make_shared<const std::string>(ToValidUtf8(text));
  }
  // A longer output comes from the sandbox, not from reprise-document.
  const bool says_why = !is_pdf && result->status == kUnreadable && text.size() < 300;
  return Fail(UnreadableDocument(is_pdf ? WhyNotPdf(result->status) : says_why ? ToValidUtf8(text) : "it is damaged"));
}

bool SandboxedReader::TakeTurn(const std::string& whose, const std::stop_token& stop) {
  MutexLock lock(mutex_);
  const auto is_free = [&]() REQUIRES(mutex_) {
    const auto own = running_.find(whose);
    std::size_t all = 0;
    for (const auto& [each, count] : running_) all += count;
    return own == running_.end() ? all < kMostAtOnce : own->second < kMostOfOne && all < kMostAtOnce / 2;
  };
  if (!turn_.wait(lock, stop, is_free)) return false;
  ++running_[whose];
  return true;
}

std::optional<SandboxedReader::Text> SandboxedReader::Recall(const std::string& digest) {
  const MutexLock lock(mutex_);
  const auto known = std::ranges::find(known_, digest, &Known::digest);
  if (known == known_.end() || known->until < std::chrono::steady_clock::now()) return std::nullopt;
  known_.splice(known_.begin(), known_, known);
  return known->text;
}

void SandboxedReader::Remember(const std::string& digest, const Text& text) {
  const ErrorCode code = text ? ErrorCode::kInternal : text.error().code;
  if (code == ErrorCode::kCancelled || code == ErrorCode::kUnavailable) return;  // the next try may succeed
  const auto size = [](const Known& known) { return known.text ? (*known.text)->size() : 0; };
  const bool may_pass = code == ErrorCode::kDeadlineExceeded;
  const auto until = std::chrono::steady_clock::now() + (may_pass ? std::chrono::hours(0) + kRetryAfter : kForEver);
  const MutexLock lock(mutex_);
  std::erase_if(known_, [&](const Known& each) REQUIRES(mutex_) {
    if (each.digest != digest) return false;
    known_bytes_ -= size(each);
    return true;
  });
  known_.push_front({digest, text, until});
  known_bytes_ += size(known_.front());
  while (known_.size() > 1 && (known_bytes_ > kMaxKnownBytes || known_.size() > kMostKnown)) {
    known_bytes_ -= size(known_.back());
    known_.pop_back();
  }
}

}  // namespace reprise
