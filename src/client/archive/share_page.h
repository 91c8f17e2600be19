#pragma once

#include <string>
#include <string_view>

#include "app/secret_finder.h"
#include "client/archive/chat_reader.h"
#include "crypto/proof.h"
#include "reprise/interaction.h"

namespace reprise {

// share.html, before anything is put into it.
std::string_view ShareTemplate();

// An HTML file that stands alone: a proof to read and to play, which checks itself in the browser. Beside the proof it
// carries what the leaves have digests of: contents of changed files, and what models were told. Texts in which
// `finder` (null: none) finds something are left out, and so are leaves with their digests. It opens no connection, and
// its policy allows it none.
std::string SharePage(Proof proof, const Chat& chat, ChatReader& reader, SecretFinder* finder);

}  // namespace reprise
