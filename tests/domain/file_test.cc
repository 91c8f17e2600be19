#include "base/text.h"
#include "reprise/file_store.h"
#include "support/test.h"

namespace reprise::file_test {
namespace {

std::string NameOf(std::string_view given) { return MakeFile(given, "text/plain", "").value().info.filename; }
std::string TypeOf(std::string_view given) { return MakeFile("a", given, "").value().info.mime_type; }

}  // namespace

TEST_CASE("MakeFile: keeps only the part of a name that reads as a name", "[files]") {
  CHECK(NameOf("notes.txt") == "notes.txt");
  CHECK(NameOf("../../etc/passwd") == "passwd");
  CHECK(NameOf("C:\\temp\\a.txt") == "a.txt");
  for (const char* nothing : {"", ".", "..", "/", "a/", "   ", "\n", "\x01\x02"}) CHECK(NameOf(nothing) == "file");
  CHECK(NameOf(" a b ") == "a b");
  CHECK(NameOf("a\r\nSet-Cookie: x") == "aSet-Cookie: x");
  CHECK(NameOf("photo\xe2\x80\xaegpj.exe") == "photogpj.exe");  // right-to-left override
  CHECK(NameOf("a\xc2\x85z") == "az");                          // a C1 control
  CHECK(NameOf("na\xc3\xafve\xf0\x9f\x99\x82.md") == "na\xc3\xafve\xf0\x9f\x99\x82.md");
  CHECK(NameOf("bad\xff.txt") == "bad\xef\xbf\xbd.txt");
  const std::string longest = NameOf(std::string(5000, 'x') + ".txt");
  CHECK(longest == std::string(200, 'x'));
}

TEST_CASE("MakeFile: a type is a media type without its parameters", "[files]") {
  CHECK(TypeOf("text/plain") == "text/plain");
  CHECK(TypeOf("Text/HTML; charset=utf-8") == "text/html");
  CHECK(TypeOf("") == "application/octet-stream");
  CHECK(TypeOf("application/vnd.api+json") == "application/vnd.api+json");
  for (const char* bad : {"text", "/", "text/", "/plain", "text/pl ain", "a/b/c", "text/\x01", "te\xc3\xa4t/x"}) {
    CAPTURE(bad);
    const auto file = MakeFile("a", bad, "");
    REQUIRE_FALSE(file);
    CHECK(file.error().code == ErrorCode::kUnsupportedType);
  }
  CHECK_FALSE(MakeFile("a", "text/" + std::string(200, 'x'), ""));
}

TEST_CASE("MakeFile: size and digest are the content's, ids are unique", "[files]") {
  const StoredFile file = MakeFile("a", "", "hello").value();
  CHECK(file.info.size_bytes == 5);
  CHECK(file.info.digest == "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
  CHECK(file.info.id != MakeFile("a", "", "hello").value().info.id);
}

TEST_CASE("FileId: accepts exactly its written form", "[files]") {
  const std::string good = FileId::Random().str();
  CHECK(FileId::Parse(good).value().str() == good);
  for (const std::string& bad :
       {std::string(), good + "0", good.substr(0, 36), "File" + good.substr(4), "file_" + std::string(32, 'G'),
        "file_" + std::string(32, 'A'), "file_/" + std::string(31, 'a'), "../" + good}) {
    CAPTURE(bad);
    CHECK_FALSE(FileId::Parse(bad));
  }
}

TEST_CASE("IsText: UTF-8 without NUL", "[files]") {
  CHECK(IsText(""));
  CHECK(IsText("a\tb\r\n\x1b[0m"));
  CHECK_FALSE(IsText(std::string("a\0b", 3)));
  CHECK_FALSE(IsText("\xff\xfe"));
  CHECK_FALSE(IsText("cut \xc3"));
}

}  // namespace reprise::file_test
