#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "reprise/file_store.h"
#include "reprise/result.h"

namespace reprise {

// Makes text of documents, for models that do not take them as they are: PDF, docx, xlsx, pptx, odt, ods, odp, HTML.
// Thread-safe.
class DocumentReader {
 public:
  virtual ~DocumentReader() = default;
  // Blocks, no longer than a limit allows; what was read lately is there at once. Valid UTF-8. The message of a failure
  // is for people and models, and says what is wrong with the file: kInvalidArgument (reason "document_unreadable": it
  // is damaged, encrypted, or would become too large), kDeadlineExceeded (it takes too long to read), kUnavailable
  // (reason "document_reader_missing": a program that reads it, or the sandbox for it, is not there), kCancelled.
  virtual Result<std::shared_ptr<const std::string>> Read(const StoredFile& file, const std::stop_token& stop) = 0;
};

}  // namespace reprise
