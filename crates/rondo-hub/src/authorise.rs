//! Authorization: the one place that decides before anything is done for a person, buttons and commands included.

use crate::channel::ChatKind;
use crate::users::{Actor, Role};

/// Action of a person in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Say something.
    Speak,
    /// Be told what there is and how it stands.
    Look,
    /// Stop the turn that runs.
    Stop,
    /// Begin again, or replace the conversation with a summary of it.
    Reset,
    /// Let a call run that needs approval.
    Approve,
    /// Refuse a call that needs approval.
    Deny,
    /// Choose the model that answers.
    ChooseModel,
    /// Set up timed work in the chat.
    Schedule,
    /// Change users, or what was not sent.
    Administer,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Speak,
        Self::Look,
        Self::Stop,
        Self::Reset,
        Self::Approve,
        Self::Deny,
        Self::ChooseModel,
        Self::Schedule,
        Self::Administer,
    ];
}

/// Why someone may not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("only {needed} may do that {place}")]
pub struct Denied {
    needed: &'static str,
    place: &'static str,
}

/// Returns whether someone may do something in a chat of that kind. In a private chat a person is alone, so it is theirs;
/// what concerns all in a group takes an owner, and so does what lets something run.
///
/// # Errors
/// When they may not; the text is for them.
pub fn authorise(actor: &Actor, action: Action, chat: ChatKind) -> Result<(), Denied> {
    let needed = match (action, chat) {
        (Action::Speak | Action::Look, _) => Role::Guest,
        (Action::Stop | Action::Reset, ChatKind::Private) => Role::Guest,
        (Action::Stop | Action::Deny, _)
        | (Action::ChooseModel | Action::Schedule, ChatKind::Private) => Role::Member,
        (Action::Reset | Action::ChooseModel | Action::Schedule, ChatKind::Group)
        | (Action::Approve | Action::Administer, _) => Role::Owner,
    };
    match actor.role >= needed {
        true => Ok(()),
        false => Err(Denied {
            needed: match needed {
                Role::Guest => "a user",
                Role::Member => "a member",
                Role::Owner => "an owner",
            },
            place: match chat {
                ChatKind::Private => "here",
                ChatKind::Group => "in a group",
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_role_may_do_all_that_a_lower_one_may() {
        let actor = |role| Actor {
            id: "t:1".to_owned(),
            user: "ann".to_owned(),
            role,
        };
        let roles = [Role::Guest, Role::Member, Role::Owner].map(actor);
        for chat in [ChatKind::Private, ChatKind::Group] {
            for action in Action::ALL {
                let may: Vec<_> = roles
                    .iter()
                    .map(|it| authorise(it, action, chat).is_ok())
                    .collect();
                assert!(may.is_sorted(), "{action:?} {chat:?} {may:?}");
                assert!(may.ends_with(&[true]), "{action:?} {chat:?}");
            }
            for alone in [Action::Approve, Action::Administer] {
                let [guest, member, _] = &roles;
                assert!(authorise(guest, alone, chat).is_err());
                assert!(authorise(member, alone, chat).is_err());
            }
        }
    }
}
