#include <vector>

#include "store/chat_index.h"
#include "support/test.h"

namespace reprise::index_writer_test {

TEST_CASE("IndexWriter: its end writes what is scheduled, but not for longer than it may take", "[store]") {
  const auto written_at_end = [](std::chrono::milliseconds at_end) {
    std::vector<std::string> written;
    {
      IndexWriter writer(
          std::chrono::hours(1), [&](const ChatId& chat) { written.push_back(chat.str()); }, at_end);
      writer.WriteLater(*ChatId::Parse("a"));
      writer.WriteLater(*ChatId::Parse("b"));
    }
    return written;
  };
  CHECK(written_at_end(std::chrono::hours(1)) == std::vector<std::string>{"a", "b"});
  CHECK(written_at_end(std::chrono::milliseconds(0)).empty());
}

}  // namespace reprise::index_writer_test
