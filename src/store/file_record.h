#pragma once

#include <string>
#include <string_view>

#include "reprise/file_store.h"
#include "reprise/result.h"
#include "store/record.h"

namespace reprise {

// The plaintext of a file's record (schemas/file.schema.json): JSON with the content as text where it is text, else in
// base64url.
std::string FileToJson(const ChatId& chat, const StoredFile& file);

// kCorruption unless `text` is what FileToJson writes for a file of this place.
Result<StoredFile> FileFromJson(const RecordPlace& place, std::string_view text);

// The place that the record of a file is for, by what it says itself. kInvalidArgument if it is no such record.
Result<RecordPlace> PlaceOfFile(std::string_view text);

}  // namespace reprise
