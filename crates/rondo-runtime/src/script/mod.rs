//! Parts of the runtime for scripts: a session that records its calls, conversations with agents, and commands and
//! pages of its own.
//!
//! A script is a session of records that belong to no turn ([`ScriptCall`](rondo_core::ports::ScriptCall)). Its
//! conversations are sessions below it, as those of subagents are below theirs: each is named by the call that began
//! it, so a script that runs again over its records finds them.
//!
//! # Layout
//! - `session`: the script's own session, and what the script does itself; `agent`: the models, tools and limits of its
//!   agents; `conversation`: their turns; `recorded`: turns that are in the records already; `server`: a server of tools;
//!   `init_files`: scripts that extend hosts.

mod agent;
mod conversation;
mod init_files;
mod recorded;
mod server;
mod session;

pub use agent::{AgentModel, ScriptAgent};
pub use conversation::{AgentConversation, ConversationEnd};
pub use init_files::InitFiles;
pub use recorded::{RecordedCall, TurnState};
pub use server::ScriptServer;
pub use session::{Interrupted, ScriptSession};
