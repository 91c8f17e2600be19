#include "wire/multipart.h"

#include "support/test.h"

namespace reprise::multipart_test {
namespace {

Request Form(const std::string& body, const std::string& type = "multipart/form-data; boundary=XX") {
  return {.head = {.method = "POST", .target = "/chats/c/files", .headers = {{"content-type", type}}}, .body = body};
}

std::string Part(const std::string& headers, const std::string& content) {
  return "--XX\r\n" + headers + "\r\n\r\n" + content + "\r\n";
}

const std::string kFile =
    "Content-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain";

std::string MessageOf(const Request& request) {
  const auto upload = ReadUpload(request);
  REQUIRE_FALSE(upload);
  CHECK(upload.error().code == ErrorCode::kInvalidArgument);
  return upload.error().message;
}

}  // namespace

TEST_CASE("ReadUpload: reads a form with one file, as curl sends it", "[wire]") {
  const auto upload = ReadUpload(Form(Part(kFile, "hello\r\n--X\r\n") + "--XX--\r\n")).value();
  CHECK(upload.filename == "a.txt");
  CHECK(upload.mime_type == "text/plain");
  CHECK(upload.content == "hello\r\n--X\r\n");
  CHECK(ReadUpload(Form(Part(kFile, "") + "--XX--")).value().content.empty());
  const std::string bytes("\0\xff\r\n\r\n", 6);
  CHECK(ReadUpload(Form(Part(kFile, bytes) + "--XX--\r\nepilogue")).value().content == bytes);
  const auto quoted = ReadUpload(Form(Part(kFile, "x") + "--XX--", "Multipart/Form-Data; charset=x; boundary=\"XX\""));
  CHECK(quoted.value().content == "x");
}

TEST_CASE("ReadUpload: reads names with quotes, paths and other characters", "[wire]") {
  const auto name = [](const std::string& parameters) {
    return ReadUpload(Form(Part("Content-Disposition: form-data; " + parameters, "x") + "--XX--")).value().filename;
  };
  CHECK(name(R"(name="file"; filename="a \"b\"; c.txt")") == R"(a "b"; c.txt)");
  CHECK(name(R"(filename="C:\temp\a.txt"; name=file)") == R"(C:\temp\a.txt)");
  CHECK(name(R"(name=file; filename=plain.txt)") == "plain.txt");
  CHECK(name(R"(name=file; filename="x"; filename*=UTF-8''na%C3%AFve.txt)") == "na\xc3\xafve.txt");
  CHECK(name(R"(name=file; filename="")").empty());
}

TEST_CASE("ReadForm: reads a file among texts", "[wire]") {
  const auto text = [](const std::string& name, const std::string& value) {
    return Part("Content-Disposition: form-data; name=\"" + name + "\"", value);
  };
  const auto read = ReadForm(Form(text("prompt", "a\r\n\xc3\xa9") + Part(kFile, "x") + text("model", "") + "--XX--"),
                             {"model", "language", "prompt"});
  REQUIRE(read);
  CHECK(read->file.content == "x");
  CHECK(read->file.filename == "a.txt");
  CHECK(read->fields == std::map<std::string, std::string>{{"prompt", "a\r\n\xc3\xa9"}, {"model", ""}});
  const std::string many = text("a", "x") + text("b", "x") + text("c", "x") + text("d", "x");
  for (const std::string& parts :
       {text("model", "x"), Part(kFile, "x") + text("other", "x"), Part(kFile, "x") + Part(kFile, "y"),
        Part(kFile, "x") + text("model", "\xff"), Part(kFile, "x") + text("model", "a") + text("model", "b"),
        Part(kFile, "x") + text("", "x"), Part(kFile, "x") + many + many}) {
    const auto refused = ReadForm(Form(parts + "--XX--"), {"model", "a", "b", "c", "d"});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().reason == "invalid_body");
  }
  CHECK(ReadForm(Form("{}", "application/json"), {}).error().code == ErrorCode::kUnsupportedType);
}

TEST_CASE("ReadUpload: refuses any other form with a message", "[wire]") {
  CHECK_FALSE(MessageOf(Form("")).empty());
  CHECK_FALSE(MessageOf(Form("--XX--")).empty());
  CHECK_FALSE(MessageOf(Form("hello")).empty());
  CHECK_FALSE(MessageOf(Form(Part(kFile, "x"))).empty());  // no end
  CHECK_FALSE(MessageOf(Form(Part(kFile, "x") + Part(kFile, "y") + "--XX--")).empty());
  CHECK_FALSE(MessageOf(Form("--XXY\r\n" + kFile + "\r\n\r\nx\r\n--XX--")).empty());
  CHECK_FALSE(MessageOf(Form("--XX\r\n\r\nx\r\n--XX--")).empty());  // no headers
  CHECK_FALSE(MessageOf(Form(Part("Content-Disposition: form-data; name=\"file\"", "x") + "--XX--")).empty());
  CHECK_FALSE(MessageOf(Form(Part("Content-Disposition: attachment; filename=x", "x") + "--XX--")).empty());
  CHECK_FALSE(MessageOf(Form(Part("Content-Disposition: form-data; filename=\"x", "x") + "--XX--")).empty());
  CHECK_FALSE(MessageOf(Form(Part("nonsense", "x") + "--XX--")).empty());
  CHECK_FALSE(MessageOf(Form(Part(kFile, "x") + "--XX--", "multipart/form-data")).empty());
  CHECK_FALSE(MessageOf(Form(Part(kFile, "x") + "--XX--", "multipart/form-data; boundary=\"\"")).empty());
  CHECK_FALSE(MessageOf(Form("x", "multipart/form-data; boundary=" + std::string(71, 'X'))).empty());
  CHECK_FALSE(MessageOf(Form("--XX\r\nX: " + std::string(5000, 'x') + "\r\n\r\n\r\n--XX--")).empty());
}

TEST_CASE("ReadUpload: refuses every prefix of a form", "[wire]") {
  const std::string whole = Part(kFile, "hello") + "--XX--";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(ReadUpload(Form(whole.substr(0, length))));
  }
  CHECK(ReadUpload(Form(whole)));
}

TEST_CASE("ReadUpload: takes any other body for the file itself", "[wire]") {
  Request request = Form("--XX", "text/csv; charset=utf-8");
  CHECK(ReadUpload(request).value().mime_type == "text/csv");
  CHECK(ReadUpload(request).value().content == "--XX");
  request.head.headers.emplace_back("content-disposition", "attachment; filename=\"b.csv\"");
  CHECK(ReadUpload(request).value().filename == "b.csv");
  request.head.target += "?name=c%20d.csv";
  CHECK(ReadUpload(request).value().filename == "c d.csv");
  // curl sends this type by default.
  CHECK(ReadUpload(Form("x", "application/x-www-form-urlencoded")).value().mime_type.empty());
  CHECK_FALSE(ReadUpload(Form("x", "text/plain; charset=\"")));
}

TEST_CASE("AttachmentDisposition: no name can end the header or its quotes", "[wire]") {
  CHECK(AttachmentDisposition("a.txt") == "attachment; filename=\"a.txt\"; filename*=UTF-8''a.txt");
  CHECK(AttachmentDisposition("\"; x=\\ %\xc3\xa9") ==
        "attachment; filename=\"_; x=_ ___\"; filename*=UTF-8''%22%3B%20x%3D%5C%20%25%C3%A9");
}

}  // namespace reprise::multipart_test
