#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "reprise/ids.h"

// How much there is to do, for a progress line: counted by names alone, which takes a thousandth of the work itself.
// What cannot be listed counts as nothing; the work says what is wrong with it.
namespace reprise {

struct StoredCount {
  std::uint64_t chats = 0, interactions = 0, journals = 0, files = 0;
};
StoredCount CountStored(const std::string& data_dir, std::span<const ChatId> chats);

// Regular files in a folder and in the folders below it; no link is followed.
std::uint64_t CountFilesBelow(const std::string& folder);

}  // namespace reprise
