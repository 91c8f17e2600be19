#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "reprise/file_store.h"
#include "reprise/result.h"

namespace reprise {

// Extracts text from documents for models that do not take them: PDF, docx, xlsx, pptx, odt, ods, odp, HTML.
// Thread-safe.
class DocumentReader {
 public:
  virtual ~DocumentReader() = default;
  // Blocks up to a limit; recent results are cached. Returns valid UTF-8. Failures, with a message for people and
  // models: kInvalidArgument (reason "document_unreadable": damaged, encrypted, or the text would be too large),
  // kDeadlineExceeded (reading takes too long), kUnavailable (reason "document_reader_missing": the program for this
  // format, or its sandbox, is missing), kCancelled.
  virtual Result<std::shared_ptr<const std::string>> Read(const StoredFile& file, const std::stop_token& stop) = 0;
};

}  // namespace reprise
