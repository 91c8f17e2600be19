#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/archive/chat_reader.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/result.h"

namespace reprise {

// A chat for a suite of tests, without secrets.
struct RecordingForTests {
  std::string document;                        // JSON, as engine/chat_document reads it
  std::map<std::string, std::size_t> taken{};  // how often each kind of secret was taken out: "a GitHub token"
  std::size_t left_out = 0;                    // files and contents of workspace files that held one
};

// Reads a stored chat, and replaces secrets in all its texts: those of the configuration and of the environment, words
// that look like keys of well-known services, and `words`. A replaced text keeps its length, so the requests on record
// still add up to bodies; their digests are made anew, and the record says so. The failures of the store.
Result<RecordingForTests> RecordForTests(ChatReader& reader, const ChatId& chat,
                                         const std::vector<std::string>& words = {});

// "2 files or contents of files that hold a secret"
std::string FilesLeftOut(std::size_t count, const std::string& what);

// Forgets the digests of contents of workspace files that are not kept.
void ForgetContents(Interaction& turn, const std::function<bool(const std::string& digest)>& is_kept);

}  // namespace reprise
