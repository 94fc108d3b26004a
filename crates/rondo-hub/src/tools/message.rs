//! The tool `message`: sends text and files to a chat in the middle of a turn.

use super::{Failure, Scope, arguments, failed, invalid, outcome};
use crate::channel::{ChatKey, ChatKind, OutgoingFile};
use crate::hub::OUTGOING_DIR;
use crate::outgoing::{self, Details};
use crate::users::Role;
use async_trait::async_trait;
use cap_fs_ext::OpenOptionsSyncExt as _;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use rondo_core::ports::OutboxKind;
use rondo_core::{Tool, ToolInvocation};
use rondo_runtime::files::sync_above;
use rondo_types::{Commit, Concurrency, Recovery, ToolOutcome, ToolOutput, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The tool's name.
pub(super) const NAME: &str = "message";
/// Files of one message.
const FILES_MAX: usize = 10;
/// Bytes of one file.
const FILE_BYTES_MAX: u64 = 50 << 20;
/// Bytes of a message's text.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// Sends a message: `message {text?, files?, chat?}`.
pub(super) struct SendMessage(pub(super) Arc<Scope>);

#[derive(Deserialize)]
struct Args {
    #[serde(default)]
    text: String,
    #[serde(default)]
    files: Vec<String>,
    chat: Option<String>,
}

#[async_trait]
impl Tool for SendMessage {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Sends a message to this chat at once, before your answer: progress of long work, or files. Your \
                          answer is sent by itself; do not repeat it with this tool."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "text": {"type": "string", "description": "Markdown. May be left out if there are files."},
                    "files": {
                        "type": "array",
                        "items": {"type": "string"},
                        "maxItems": FILES_MAX,
                        "description": "Paths in the working directory.",
                    },
                    "chat": {"type": "string", "description": "Another chat, as `channel:chat`. This chat if left out."},
                },
            }),
            concurrency: Concurrency::Exclusive,
            // Its message is committed with its result: a call without one has sent nothing.
            recovery: Recovery::Idempotent,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        outcome(self.send(invocation).await)
    }
}

impl SendMessage {
    async fn send(&self, invocation: ToolInvocation) -> Result<ToolOutcome, Failure> {
        let args: Args = arguments(invocation.arguments)?;
        if args.text.trim().is_empty() && args.files.is_empty() {
            return Err(invalid("give a `text` or `files`"));
        }
        if args.text.len() > TEXT_BYTES_MAX || args.files.len() > FILES_MAX {
            return Err(invalid(format!(
                "a message has at most {TEXT_BYTES_MAX} bytes and {FILES_MAX} files"
            )));
        }
        let chat = self.target(args.chat.as_deref()).await?;
        let core = self.0.core()?;
        let from = core.directory_of(&self.0.session);
        let to = core
            .directory
            .join(OUTGOING_DIR)
            .join(&invocation.idempotency_key);
        let names = args.files;
        let copied = tokio::task::spawn_blocking(move || copies(&from, &to, &names)).await;
        let files = copied.map_err(failed)?.map_err(invalid)?;
        let details = Details {
            files,
            ..Details::default()
        };
        let key = format!("message:{}", invocation.idempotency_key);
        let entry = outgoing::entry(key, &chat, OutboxKind::Message, args.text, &details);
        Ok(ToolOutcome::Ok(ToolOutput {
            value: Value::String("It is queued and will be sent.".to_owned()),
            effects: Box::new(Commit::sending(entry.within_bounds())),
            ..ToolOutput::default()
        }))
    }

    /// Returns the chat that is meant. Only an owner alone with the hub may write elsewhere, and only to chats that the
    /// hub knows.
    async fn target(&self, chat: Option<&str>) -> Result<ChatKey, Failure> {
        let own = &self.0.chat;
        let Some(name) = chat.filter(|it| !it.is_empty()) else {
            return Ok(own.key.clone());
        };
        let key = named(name)
            .ok_or_else(|| invalid("`chat` is `channel:chat`, such as `telegram:4711`"))?;
        if key == own.key {
            return Ok(key);
        }
        if self.0.actor.role != Role::Owner || own.kind != ChatKind::Private {
            return Err(failed(
                "only an owner may send to other chats, from a private chat",
            ));
        }
        let known = self.0.core()?.chats.find_open(&key).await.map_err(failed)?;
        match known {
            Some(chat) => Ok(chat.key),
            None => Err(failed(format!("the hub knows no chat `{name}`"))),
        }
    }
}

/// Returns whether a call sends to the chat of its turn.
pub(super) fn is_for_chat(arguments: &Value, chat: &ChatKey) -> bool {
    match arguments.get("chat") {
        None | Some(Value::Null) => true,
        Some(Value::String(name)) => name.is_empty() || named(name).as_ref() == Some(chat),
        Some(_) => false,
    }
}

/// Returns the chat of a name such as `telegram:4711`.
fn named(name: &str) -> Option<ChatKey> {
    let (channel, chat_id) = name.split_once(':')?;
    Some(ChatKey {
        channel: channel.to_owned(),
        account: String::new(),
        chat_id: chat_id.to_owned(),
        topic: None,
    })
}

/// Copies files of the chat's directory to where they wait, so that what is sent is what they were at the call, and
/// nothing that a link leads to outside of the directory.
fn copies(from: &Path, to: &Path, names: &[String]) -> Result<Vec<OutgoingFile>, String> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let dir = Dir::open_ambient_dir(from, ambient_authority());
    let dir = dir.map_err(|error| format!("the working directory cannot be read: {error}"))?;
    fs::create_dir_all(to).map_err(|error| error.to_string())?;
    let mut files = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let path = Path::new(name);
        let path = path.strip_prefix(from).unwrap_or(path);
        let target = to.join(number.to_string());
        copy(&dir, path, &target).map_err(|error| format!("`{name}` cannot be sent: {error}"))?;
        files.push(OutgoingFile {
            name: shown_name(path),
            path: target,
        });
    }
    sync_above(&to.join("0")).map_err(|error| error.to_string())?;
    Ok(files)
}

fn copy(dir: &Dir, path: &Path, target: &PathBuf) -> io::Result<()> {
    let mut options = OpenOptions::new();
    // A pipe would wait for its other end.
    options.read(true).nonblock(true);
    let file = dir.open_with(path, &options)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(io::Error::other("it is larger than 50 MB"));
    }
    let mut copy = fs::File::create(target)?;
    io::copy(&mut file.take(FILE_BYTES_MAX), &mut copy)?;
    copy.sync_all()
}

fn shown_name(path: &Path) -> String {
    let name = path.file_name().map(|it| it.to_string_lossy().into_owned());
    let name = name.unwrap_or_else(|| "file".to_owned());
    name.chars().filter(|it| !it.is_control()).collect()
}
