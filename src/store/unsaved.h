#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "crypto/key_set.h"
#include "reprise/file_system.h"
#include "reprise/interaction_store.h"
#include "reprise/result.h"

// Fallback folders for finished interactions that the data folder cannot take (disk full, folder gone), and the way
// back.
namespace reprise {

// The fallback folders of a data folder, first choice first: below $XDG_STATE_HOME/reprise/unsaved (else
// ~/.local/state/reprise/unsaved), then below $TMPDIR (else /tmp)/reprise-<uid>/unsaved. The last part is a digest of
// the data folder's absolute path, so that servers with different folders do not bring home each other's interactions.
std::array<std::string, 2> UnsavedFolders(const std::string& data_folder);

// A store for Engine::Parts::fallback_stores. Touches nothing before its first SaveInteraction. `file_system` must
// outlive it.
std::unique_ptr<InteractionStore> OpenUnsavedStore(const std::string& folder, std::shared_ptr<const KeySet> keys,
                                                   FileSystem& file_system);

struct BroughtHome {
  std::size_t moved = 0;
  std::size_t left = 0;  // damaged, without their parent, or their number has been used again
};
// Moves each interaction of a fallback folder into `home`, oldest first; those that cannot be placed stay and are
// logged. May be interrupted and called again. Call it before the engine starts. A missing folder is ok. kIo if it
// cannot be read, kForbidden if another user could change it.
Result<BroughtHome> BringHome(const std::string& folder, std::shared_ptr<const KeySet> keys, FileSystem& file_system,
                              InteractionStore& home);

}  // namespace reprise
