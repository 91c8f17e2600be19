#include "model/model_listing.h"

#include "support/test.h"

namespace reprise::model_listing_test {
namespace {

std::vector<ListedModel> Read(std::string_view json) {
  auto models = ReadModelList(json);
  REQUIRE(models);
  return *models;
}

TEST_CASE("ReadModelList: the forms in use", "[model]") {
  const std::vector<ListedModel> two{{"a", 0}, {"b/c", 0}};
  CHECK(Read(R"({"object":"list","data":[{"id":"a","object":"model"},{"id":"b/c"}]})") == two);
  CHECK(Read(R"({"models":[{"name":"a"},{"name":"b/c"}]})") == two);
  CHECK(Read(R"([{"id":"a"},{"id":"b/c"}])") == two);
  CHECK(Read(R"({"data":[]})").empty());
}

TEST_CASE("ReadModelList: the size of the context under its many names", "[model]") {
  CHECK(Read(R"({"data":[{"id":"v","max_model_len":4096},{"id":"o","context_length":131072},
    {"id":"g","context_window":8192},{"id":"l","max_context_length":32768,"loaded_context_length":4096},
    {"id":"c","max_input_tokens":200000,"max_tokens":64000},{"id":"ll","meta":{"n_ctx_train":40960}},
    {"id":"w","context_length":"big","meta":7},{"id":"n","context_length":-5},{"id":"h","context_length":1e30}]})") ==
        std::vector<ListedModel>{{"v", 4096},
                                 {"o", 131072},
                                 {"g", 8192},
                                 {"l", 4096},
                                 {"c", 200000},
                                 {"ll", 40960},
                                 {"w", 0},
                                 {"n", 0},
                                 {"h", 0}});
}

TEST_CASE("ReadModelList: models' abilities under their many names", "[model]") {
  const auto one = [](std::string_view members) {
    return Read(R"({"data":[{"id":"a",)" + std::string(members) + "}]}").at(0).abilities;
  };
  CHECK(
      one(R"("architecture":{"input_modalities":["text","image","file"]},"supported_parameters":["tools","top_p"])") ==
      ModelAbilities{.tools = true, .images = true, .pdf = true, .audio = false, .reasoning = false});
  CHECK(one(R"("input_modalities":["text","audio"],"supported_features":["reasoning"])") ==
        ModelAbilities{.tools = false, .images = false, .pdf = false, .audio = true, .reasoning = true});
  CHECK(one(R"("capabilities":{"image_input":{"supported":true},"pdf_input":{"supported":false},
               "thinking":{"supported":true,"types":{}},"batch":{"supported":true}})") ==
        ModelAbilities{.images = true, .pdf = false, .reasoning = true});
  CHECK(one(R"("capabilities":{"function_calling":true,"vision":false,"completion_chat":true})") ==
        ModelAbilities{.tools = true, .images = false});
  CHECK(one(R"("capabilities":["completion","multimodal"])") == ModelAbilities{.images = true});
  CHECK(one(R"("supports_tools":true,"supports_image_input":false)") == ModelAbilities{.tools = true, .images = false});
  CHECK(one(R"("capabilities":7,"architecture":[],"supported_parameters":{},"input_modalities":"text")") ==
        ModelAbilities{});
  CHECK(one(R"("capabilities":{"vision":null,"thinking":{"supported":3}})") == ModelAbilities{});
}

TEST_CASE("ReadModelList: prices of a token become those of a million", "[model]") {
  const auto one = [](std::string_view pricing) {
    return Read(R"({"data":[{"id":"a","pricing":)" + std::string(pricing) + "}]}").at(0).price;
  };
  CHECK(one(R"({"prompt":"0.00000015","completion":"0.0000006","input_cache_read":"0.000000075","image":"0"})") ==
        ModelPrice{.input = 0.15, .output = 0.6, .cache_read = 0.075});
  CHECK(one(R"({"prompt":"0","completion":"0"})") == ModelPrice{});
  for (const char* text : {R"({"prompt":"-1","completion":"-1"})", R"({"prompt":"0.1"})",
                           R"({"prompt":1,"completion":2})", R"({"prompt":"nan","completion":"inf"})",
                           R"({"prompt":"1e300","completion":"0"})", "[]", R"({"prompt":"0.1 ","completion":"0.1"})"}) {
    INFO(text);
    CHECK_FALSE(one(text));
  }
}

TEST_CASE("ReadModelList: entries that are not models are ignored", "[model]") {
  const std::string longest(256, 'x');
  CHECK(Read(R"({"data":[1,null,{},{"id":null},{"id":""},{"id":"a\nb"},{"id":")" + longest + R"(y"},{"id":")" +
             longest + R"("}]})") == std::vector<ListedModel>{{longest, 0}});
}

TEST_CASE("ReadModelList: no list is an error", "[model]") {
  for (const char* text : {"", "<html>", "{}", R"({"data":5})", "7", R"({"error":"no"})"}) {
    INFO(text);
    const auto models = ReadModelList(text);
    REQUIRE_FALSE(models);
    CHECK(models.error().reason == "provider_protocol");
  }
}

}  // namespace
}  // namespace reprise::model_listing_test
