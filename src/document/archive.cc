#include "document/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <libxml/xmlreader.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <exception>
#include <memory>

#include "base/text.h"
#include "document/readers.h"

namespace reprise::document {

namespace {

constexpr std::size_t kBlock = 64 * 1024;

struct FreeArchive {
  void operator()(struct archive* reader) const { archive_read_free(reader); }
};
using Reader = std::unique_ptr<struct archive, FreeArchive>;

Reader Open(int fd) {
  ::lseek(fd, 0, SEEK_SET);
  Reader reader(archive_read_new());
  archive_read_support_format_zip_seekable(reader.get());
  if (archive_read_open_fd(reader.get(), fd, kBlock) != ARCHIVE_OK) {
    throw Unreadable{
        "it is no ZIP archive, as such documents are (an old format, or damaged, or encrypted as a whole)"};
  }
  return reader;
}

// False at the end of the archive.
bool Next(struct archive* reader, struct archive_entry*& entry) {
  const int result = archive_read_next_header(reader, &entry);
  if (result == ARCHIVE_EOF) return false;
  if (result < ARCHIVE_WARN) throw Unreadable{"the archive is damaged"};
  return true;
}

std::string NameOf(struct archive_entry* entry) {
  const char* name = archive_entry_pathname_utf8(entry);
  if (name == nullptr) name = archive_entry_pathname(entry);
  return name == nullptr ? std::string() : std::string(name);
}

}  // namespace

Archive::Archive(int fd) : fd_(fd) {
  struct stat status {};
  if (::fstat(fd, &status) == 0) size_ = static_cast<std::uint64_t>(status.st_size);
  const Reader reader = Open(fd_);
  std::uint64_t said = 0;
  for (struct archive_entry* entry = nullptr; Next(reader.get(), entry);) {
    if (names_.size() >= kMaxEntries) {
      throw Unreadable{"the archive has more than " + std::to_string(kMaxEntries) + " entries"};
    }
    if (archive_entry_is_encrypted(entry)) throw Unreadable{"it is encrypted"};
    names_.push_back(NameOf(entry));
    if (archive_entry_size_is_set(entry))
      said += static_cast<std::uint64_t>(std::max<la_int64_t>(0, archive_entry_size(entry)));
    Count(said);
  }
  unpacked_ = 0;
}

bool Archive::IsSame(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, [](char a, char b) { return LowerCase(a) == LowerCase(b); });
}

bool Archive::Has(std::string_view name) const {
  return std::ranges::any_of(names_, [&](const std::string& each) { return IsSame(each, name); });
}

void Archive::Count(std::uint64_t bytes) {
  if (bytes > kMaxBytes) {
    throw Unreadable{"it would become larger than " + std::to_string(kMaxBytes >> 20) + " MiB when it is unpacked"};
  }
  if (bytes > kFreeBytes && bytes / kMaxRatio > size_) {
    throw Unreadable{"it would become more than " + std::to_string(kMaxRatio) +
                     " times as large when it is unpacked, which no document does"};
  }
}

void Archive::ForEach(const std::function<bool(const std::string&)>& wants,
                      const std::function<void(const std::string&, const Read&)>& take) {
  const Reader reader = Open(fd_);
  for (struct archive_entry* entry = nullptr; Next(reader.get(), entry);) {
    const std::string name = NameOf(entry);
    if (!wants(name)) continue;
    std::uint64_t bytes = 0;
    take(name, [&](char* buffer, std::size_t size) {
      const la_ssize_t got = archive_read_data(reader.get(), buffer, size);
      if (got < 0) throw Unreadable{"the archive is damaged, or compressed by an unknown method"};
      bytes += static_cast<std::uint64_t>(got);
      unpacked_ += static_cast<std::uint64_t>(got);
      if (bytes > kMaxEntryBytes) {
        throw Unreadable{"a part of it is larger than " + std::to_string(kMaxEntryBytes >> 20) + " MiB"};
      }
      Count(unpacked_);
      return static_cast<std::size_t>(got);
    });
  }
}

namespace {

struct FreeReader {
  void operator()(xmlTextReader* reader) const { xmlFreeTextReader(reader); }
};

std::string_view XmlText(const xmlChar* text) {
  return text == nullptr ? std::string_view() : std::string_view(reinterpret_cast<const char*>(text));
}

// The C library's callbacks must not throw, so the exception is kept for later.
struct Source {
  const Archive::Read& read;
  std::exception_ptr failure;
};

int ReadMore(void* context, char* buffer, int size) {
  auto& source = *static_cast<Source*>(context);
  try {
    return static_cast<int>(source.read(buffer, static_cast<std::size_t>(size)));
  } catch (...) {
    source.failure = std::current_exception();
    return -1;
  }
}

int Close(void* /*context*/) { return 0; }

void Silent(void* /*context*/, const char* /*message*/, xmlParserSeverities /*severity*/,
            xmlTextReaderLocatorPtr /*at*/) {}

}  // namespace

std::string Element::Attribute(std::string_view name, std::string_view prefix) const {
  auto* const reader = static_cast<xmlTextReader*>(reader_);
  std::string value;
  for (int found = xmlTextReaderMoveToFirstAttribute(reader); found == 1;
       found = xmlTextReaderMoveToNextAttribute(reader)) {
    if (XmlText(xmlTextReaderConstLocalName(reader)) == name &&
        (prefix.empty() || XmlText(xmlTextReaderConstPrefix(reader)) == prefix)) {
      value = std::string(XmlText(xmlTextReaderConstValue(reader)));
      break;
    }
  }
  xmlTextReaderMoveToElement(reader);
  return value;
}

bool IsOn(const Element& element) {
  const std::string value = element.Attribute("val");
  return value.empty() || value == "1" || value == "true" || value == "on";
}

void ReadXml(const Archive::Read& read, const XmlHandler& handler, const std::function<bool()>& done) {
  Source source{read, nullptr};
  const std::unique_ptr<xmlTextReader, FreeReader> owned(xmlReaderForIO(
      ReadMore, Close, &source, nullptr, nullptr, XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING));
  xmlTextReader* const reader = owned.get();
  if (reader == nullptr) throw Unreadable{"there is no memory to read it"};
  xmlTextReaderSetErrorHandler(reader, Silent, nullptr);
  int result = 1;
  while (!done() && (result = xmlTextReaderRead(reader)) == 1) {
    const std::string_view name = XmlText(xmlTextReaderConstLocalName(reader));
    switch (xmlTextReaderNodeType(reader)) {
      case XML_READER_TYPE_DOCUMENT_TYPE:
      case XML_READER_TYPE_ENTITY_REFERENCE:
        throw Unreadable{
            "its XML declares a document type, which no document of this kind does (entities could hide anything)"};
      case XML_READER_TYPE_ELEMENT: {
        const bool is_empty = xmlTextReaderIsEmptyElement(reader) == 1;
        if (handler.begin) handler.begin(Element(reader, name));
        if (is_empty && handler.end) handler.end(XmlText(xmlTextReaderConstLocalName(reader)));
        break;
      }
      case XML_READER_TYPE_END_ELEMENT:
        if (handler.end) handler.end(name);
        break;
      case XML_READER_TYPE_TEXT:
      case XML_READER_TYPE_CDATA:
      case XML_READER_TYPE_SIGNIFICANT_WHITESPACE:
      case XML_READER_TYPE_WHITESPACE:
        if (handler.text) handler.text(XmlText(xmlTextReaderConstValue(reader)));
        break;
      default:
        break;
    }
  }
  if (source.failure) std::rethrow_exception(source.failure);
  if (result < 0) throw Unreadable{"its XML is damaged"};
}

}  // namespace reprise::document
