//! Messages that can never be delivered unchanged: their receivers are told in another way.
//!
//! If the chat still accepts messages, it gets a notice in place of the message. If not, an owner is told in a
//! private chat, and the chat's own people once they write again.

use crate::channel::{ChatKey, OutboxKind};
use crate::chats;
use crate::host::OWNER_CHATS;
use crate::outgoing;
use rondo_core::ports::{HostCommit, HostStore, MailboxError, OutboxEntry, OutboxRow};

/// Prefix of the keys of these notices. One that is refused itself goes to an owner, and a second time nowhere.
const HERE: &str = "undelivered:";
/// Prefix of the keys of notices to an owner.
const TO_OWNER: &str = "undelivered-owner:";
/// Owners' chats that are looked at for one that takes messages.
const OWNERS_READ: usize = 16;
/// Characters of a reason that people read.
const REASON_CHARS_MAX: usize = 200;

/// Why a message is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The channel refuses it as it is.
    Refused,
    /// The chat takes no messages any more.
    Gone,
}

/// Stores the receivers of the notice that a message was given up, once for each message.
///
/// # Errors
/// When the storage fails.
pub(crate) async fn note(
    store: &dyn HostStore,
    row: &OutboxRow,
    cause: Cause,
    reason: &str,
) -> Result<(), MailboxError> {
    let entry = &row.entry;
    let Some(key) = ChatKey::of_text(&entry.chat) else {
        return Ok(());
    };
    let is_ours = entry.key.starts_with(HERE) || entry.key.starts_with(TO_OWNER);
    let reason = in_one_line(reason);
    let mut commit = HostCommit::default();
    match cause {
        Cause::Refused if !is_ours => {
            let name = format!("{HERE}{}", entry.key);
            let text = refused_here(entry.kind, &reason);
            commit.outbox.push(outgoing::notice(name, &key, text));
        }
        Cause::Refused => commit
            .outbox
            .extend(to_owner(store, entry, &key, &reason).await?),
        Cause::Gone => {
            let missed = chats::missed(store, &key).await?.saturating_add(1);
            commit.rows.push(chats::missed_row(&key, missed));
            commit
                .outbox
                .extend(to_owner(store, entry, &key, &reason).await?);
        }
    }
    store.commit(commit).await.map(|_| ())
}

/// Returns the notice for the people of a chat once they write there again.
pub(crate) fn missed(chat: &ChatKey, count: u32, event: &str) -> OutboxEntry {
    let messages = match count {
        1 => "A message".to_owned(),
        _ => format!("{count} messages"),
    };
    let text = format!(
        "{messages} to you could not be delivered before this. Ask again if you miss an answer."
    );
    outgoing::notice(format!("{HERE}{event}"), chat, text)
}

fn refused_here(kind: OutboxKind, reason: &str) -> String {
    let (what, how) = match kind {
        OutboxKind::Question => ("A question", "/approve or /deny still answers it."),
        OutboxKind::Final | OutboxKind::Message | OutboxKind::Notice => (
            "A message",
            "It is kept, and an owner can see it with `rondo outbox list`. Ask for it in another form.",
        ),
    };
    format!("{what} could not be delivered here: {reason}. {how}")
}

/// Returns a notice to an owner, in a private chat that takes messages; none if there is no other such chat, or an
/// owner cannot be told so either.
async fn to_owner(
    store: &dyn HostStore,
    entry: &OutboxEntry,
    key: &ChatKey,
    reason: &str,
) -> Result<Option<OutboxEntry>, MailboxError> {
    if entry.key.starts_with(TO_OWNER) {
        return Ok(None);
    }
    for (_, owner) in store.rows(OWNER_CHATS, "", OWNERS_READ).await? {
        let Some(owner) = ChatKey::of_text(&owner).filter(|it| it != key) else {
            continue;
        };
        if chats::missed(store, &owner).await? > 0 {
            continue;
        }
        let text = format!(
            "A message to the chat `{}:{}` could not be delivered: {reason}. `rondo outbox list` shows it.",
            key.channel, key.chat_id
        );
        let name = format!("{TO_OWNER}{}", entry.key);
        return Ok(Some(outgoing::notice(name, &owner, text)));
    }
    Ok(None)
}

/// Reasons come from other machines.
fn in_one_line(reason: &str) -> String {
    let plain = |c: char| if c.is_control() || c == '`' { ' ' } else { c };
    let text: String = reason.chars().take(REASON_CHARS_MAX).map(plain).collect();
    text.trim_end_matches('.').to_owned()
}
