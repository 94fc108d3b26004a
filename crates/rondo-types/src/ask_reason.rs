//! Why a person is asked about a call, for programs that tell the reasons apart.

use serde::{Deserialize, Serialize};

/// Why the gate has a person asked about a call. The question says the same in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskReason {
    /// Nothing allows the call, which may do more than look.
    NotAllowed,
    /// A rule asks about it.
    Rule,
    /// Text from outside was read, and the call may send data out or write outside the workspace.
    OutsideText,
    /// The call asks to run outside of the sandbox.
    OutsideSandbox,
    /// The call changes a file that the sandbox protects.
    ProtectedFile,
    /// A command left changes in protected files of the folder, which a person must review.
    UnreviewedFolder,
    /// The sandbox cannot check everything in the folder after the command.
    UncheckedFolder,
    /// The command may read files that must be hidden from it.
    UnhiddenFiles,
}
