#include "document/xml.h"

#include <libxml/xmlreader.h>

#include <exception>
#include <memory>

#include "document/readers.h"

namespace reprise::document {
namespace {

struct FreeReader {
  void operator()(xmlTextReader* reader) const { xmlFreeTextReader(reader); }
};

std::string_view XmlText(const xmlChar* text) {
  return text == nullptr ? std::string_view() : std::string_view(reinterpret_cast<const char*>(text));
}

// What the C library calls must not throw: the exception waits.
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
            "its XML declares a document type, as no document of this kind does (entities could hide anything)"};
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
