#pragma once

#include <set>
#include <string>
#include <vector>

#include "client/archive/chat_reader.h"
#include "crypto/proof.h"
#include "reprise/audit_log.h"
#include "reprise/interaction.h"
#include "reprise/result.h"

namespace reprise {

// What a proof of a chat says: a JSON object for each thing that was said, asked of a model, called, allowed, changed
// (docs/proof.md has a table of them). `log`: why calls ran that nobody was asked about; one that cannot be read is
// left out.
std::vector<std::string> ProofLeavesOf(const Chat& chat, const AuditLog& log);

// The proof of a stored chat, with the audit log beside it, as of now.
Proof ProveChat(const Chat& chat, ChatReader& reader, const SigningKey& key);

// The leaves of a proof that `selector` names: a number from 1, a range of them (3-7), a kind of leaf, a turn or the id
// of a call. kInvalidArgument if there are none, or it names more leaves than there are.
Result<std::set<std::size_t>> SelectLeaves(const Proof& proof, const std::string& selector);

// Leaves these out, and with them the leaves that have digests of what was in them, because who guesses a short text
// could check it by those: the digests of requests, and with a leaf of a call those of calls in its turn and of files
// in all turns, for a later change has the digest of what was there before. Returns how many leaves are left out now.
std::size_t LeaveOut(Proof& proof, const std::set<std::size_t>& leaves);

}  // namespace reprise
