#include "store/file_names.h"

#include "store/sample.h"
#include "support/test.h"

namespace reprise::file_names_test {

TEST_CASE("FileNames: the documented layout", "[store]") {
  CHECK(LockFile("/d") == "/d/.lock");
  CHECK(ChatFile("/d", Chat1()) == "/d/chat1/chat.json");
  CHECK(InteractionFile("/d", Chat1(), Id(7)) == "/d/chat1/interactions/int_007.json");
  CHECK(InteractionFile("/d", Chat1(), Id(1234)) == "/d/chat1/interactions/int_1234.json");
  CHECK(RecordName(Chat1(), Id(7)) == "chat1/interactions/int_007.json");
  CHECK(RecordName(Chat1(), {}) == "chat1/chat.json");
  const std::string trashed = TrashedChat("/d", Chat1(), At(0));
  CHECK(trashed.starts_with("/d/.trash/chat1.21000101T000000.000Z."));
  CHECK(trashed != TrashedChat("/d", Chat1(), At(0)));
}

TEST_CASE("FileNames: the name of a chat in the trash is read back", "[store]") {
  const std::string path = TrashedChat("/d", Chat1(), At(83));
  const auto name = ParseTrashName(path.substr(path.rfind('/') + 1));
  REQUIRE(name);
  CHECK(name->chat == Chat1());
  CHECK(name->deleted_at == At(83));
  for (const char* other :
       {"", ".", "chat1", "chat1.0a1b2c3d", "chat1.20250115T100000.000Z", "chat1.20250115T100000.000Z.",
        "chat1.20250115T100000.000Z.0A1B2C3D", "chat1.20250115T100000.000Z.0a1b2c3d.", ".20250115T100000.000Z.0a1b2c3d",
        "chat1.20251315T100000.000Z.0a1b2c3d", "chat1.2025-01-15T10:00:00.000Z.0a1b2c3d",
        "chat1.20250115T100000Z.0a1b2c3d", "a b.20250115T100000.000Z.0a1b2c3d",
        "../chat1.20250115T100000.000Z.0a1b2c3d"}) {
    CAPTURE(other);
    CHECK_FALSE(ParseTrashName(other));
  }
}

TEST_CASE("FileNames: only our own names are read back", "[store]") {
  CHECK(ParseInteractionFile("int_007.json") == Id(7));
  CHECK(ParseInteractionFile("int_1234.json") == Id(1234));
  for (const char* name : {"int_7.json", "int_000.json", "int_007", "int_007.json.tmp", ".int_007.json.0011.tmp",
                           "x.json", "int_007.journal", "int_-07.json", "int_99999999999.json"}) {
    CAPTURE(name);
    CHECK_FALSE(ParseInteractionFile(name));
  }
  CHECK(ParseChatDirectory("chat1") == Chat1());
  for (const char* name : {".trash", ".lock", "", "a b", "..", "-x"}) CHECK_FALSE(ParseChatDirectory(name));
}

}  // namespace reprise::file_names_test
