#include "app/key_access.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/system.h"
#include "base/terminal_text.h"
#include "base/try.h"
#include "terminal/console.h"
#include "terminal/hidden_input.h"

namespace reprise {
namespace {

constexpr std::size_t kMinPassphrase = 8, kMaxPassphrase = 1024;
constexpr int kTries = 3;

tl::unexpected<Error> CannotRead(const std::string& path) {
  return Fail(ErrorCode::kIo, "cannot read the passphrase file " + path + ": " + std::strerror(errno));
}

Result<void> CheckLength(const SecretText& passphrase) {
  if (passphrase.size() <= kMaxPassphrase) return {};
  return Fail(ErrorCode::kInvalidArgument, "the passphrase is longer than 1024 bytes");
}

Result<void> CheckNew(const SecretText& passphrase) {
  if (passphrase.size() < kMinPassphrase) {
    return Fail(ErrorCode::kInvalidArgument, "the new passphrase must have at least 8 characters");
  }
  return CheckLength(passphrase);
}

Result<SecretText> AskTwice() {
  for (int tries_left = kTries;; --tries_left) {
    auto first = AskHidden("New passphrase (8 characters or more): ");
    if (!first) return first;
    auto fits = CheckNew(*first);
    if (fits) {
      const auto second = AskHidden("The same again: ");
      if (!second) return second;
      if (*first == *second) return first;
      fits = Fail(ErrorCode::kInvalidArgument, "the two passphrases differ");
    }
    if (tries_left == 1) return Fail(std::move(fits.error()));
    Warn(fits.error().message);
  }
}

}  // namespace

std::string KeyFileOf(const Options& options) { return options.key_file.empty() ? DefaultKeyFile() : options.key_file; }

Result<SecretText> ReadPassphrase(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return CannotRead(path);
  if (S_ISREG(status.st_mode) && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Fail(ErrorCode::kForbidden,
                "the passphrase file " + path + " can be read by other users; run chmod 600 on it");
  }
  SecretText text;
  std::array<char, 256> part;
  while (text.size() <= kMaxPassphrase + 2 && std::find(text.begin(), text.end(), '\n') == text.end()) {
    const ssize_t got = ::read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CannotRead(path);
    if (got == 0) break;
    Append(text, {part.data(), static_cast<std::size_t>(got)});
    WipeBytes(part.data(), part.size());
  }
  text.erase(std::find(text.begin(), text.end(), '\n'), text.end());
  if (!text.empty() && text.back() == '\r') text.pop_back();
  if (text.empty()) return Fail(ErrorCode::kInvalidArgument, "the passphrase file " + path + " is empty");
  TRY(CheckLength(text));
  return text;
}

PassphraseSource PassphraseFrom(const Options& options) {
  if (!options.passphrase_file.empty()) return [path = options.passphrase_file] { return ReadPassphrase(path); };
  return [path = KeyFileOf(options)]() -> Result<SecretText> {
    auto passphrase = AskHidden("Passphrase of " + VisibleLine(path) + ": ");
    if (passphrase || passphrase.error().code != ErrorCode::kUnavailable) return passphrase;
    return Fail(Reason::kPassphraseNeeded,
                "the key file is protected by a passphrase, and there is no terminal to ask for it "
                "(--passphrase-file or REPRISE_PASSPHRASE_FILE)",
                path);
  };
}

Result<SecretText> NewPassphrase(const std::string& file) {
  auto passphrase = file.empty() ? AskTwice() : ReadPassphrase(file);
  if (!passphrase) return passphrase;
  TRY(CheckNew(*passphrase));
  return passphrase;
}

}  // namespace reprise
