//! Settings of the channel.

/// How a reply is shown while it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Streaming {
    /// As a draft in private chats, which no one else sees and which goes as it comes. Elsewhere as
    /// [`Streaming::Edits`].
    #[default]
    Drafts,
    /// As a message that is edited until it is the answer.
    Edits,
    /// Not at all.
    Off,
}

/// Settings of the channel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TelegramSettings {
    /// Sends answers as rich messages, which show tables and headings but need clients of 2026-06 or later.
    pub rich: bool,
    /// How a reply is shown while it is written.
    pub streaming: Streaming,
    /// The commands that clients list for the bot, with what they do.
    pub commands: Vec<(String, String)>,
}
