#pragma once

#include "reprise/file_store.h"

namespace reprise {

// Whether `file` may be put beside the files that a chat has; `there`: one of its id is among them. The failures of
// FileStore::Put.
Result<void> CheckLimits(const FileLimits& limits, const FileListing& present, const StoredFile& file, bool there);

// Oldest first.
void SortListing(FileListing& listing);

}  // namespace reprise
