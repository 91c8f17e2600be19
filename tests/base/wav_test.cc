#include "base/wav.h"

#include "support/test.h"

namespace reprise::wav_test {

TEST_CASE("Wav: what is made is read again", "[base]") {
  const std::string samples("\x01\x02\x03\x04", 4);
  CHECK(MakeWav(samples).size() == 44 + samples.size());
  CHECK(SamplesIn(MakeWav(samples)) == samples);
  CHECK(SamplesIn(MakeWav("")) == "");
}

TEST_CASE("Wav: other chunks are passed over, and a size that was never written is the rest", "[base]") {
  const std::string wav = MakeWav("abcd");
  const std::string note("LIST\x03\0\0\0xyz\0", 12);
  CHECK(SamplesIn(wav.substr(0, 12) + note + wav.substr(12)) == "abcd");
  std::string endless = wav;
  endless.replace(40, 4, "\xff\xff\xff\xff");
  CHECK(SamplesIn(endless) == "abcd");
  CHECK(SamplesIn(endless + "e") == "abcd");  // half a sample
}

TEST_CASE("Wav: other forms and cut files are none", "[base]") {
  const std::string wav = MakeWav("abcd");
  for (const std::size_t at : {20, 22, 24, 34}) {  // form, channels, rate, bits
    std::string other = wav;
    other[at] = static_cast<char>(other[at] ^ 3);
    CAPTURE(at);
    CHECK_FALSE(SamplesIn(other));
  }
  for (std::size_t size = 0; size < 44; ++size) {
    CAPTURE(size);
    CHECK_FALSE(SamplesIn(wav.substr(0, size)));
  }
  CHECK_FALSE(SamplesIn("no sound"));
}

}  // namespace reprise::wav_test
