// reprise-document KIND: prints the text of the document on stdin, for `reprise`, which runs it in its sandbox. If it
// cannot read the document, it prints the reason and exits with status 3. It is a separate program so that only this
// one links parsers of untrusted files.
#include <unistd.h>

#include <exception>
#include <string>
#include <string_view>

#include "document/readers.h"

namespace {

constexpr int kUnreadable = 3, kUsage = 2;

bool Print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(1, text.data(), text.size());
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

int Refuse(const std::string& why) {
  Print(why);
  return kUnreadable;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace reprise::document;
  const std::string_view kind = argc == 2 ? argv[1] : "";
  Output out;
  try {
    if (kind == "office") {
      ReadOffice(out);
    } else if (kind == "html") {
      ReadHtml(out);
    } else if (kind == "text") {
      ReadEncodedText(out);
    } else {
      Print("usage: reprise-document office|html|text <FILE\n");
      return kUsage;
    }
  } catch (const Unreadable& unreadable) {
    return Refuse(unreadable.why);
  } catch (const std::bad_alloc&) {
    return Refuse("it takes more memory than is allowed");
  } catch (const std::exception&) {
    return Refuse("it is damaged");
  }
  return Print(out.Told()) ? 0 : 1;
}
