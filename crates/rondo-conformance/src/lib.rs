//! What every engine of the journal and the mailbox promises, as tests that need only a constructor.
//!
//! An engine implements [`Engine`] and names its constructor in [`engine_tests!`](crate::engine_tests), which makes
//! one test of each check:
//!
//! ```text
//! mod postgres {
//!     rondo_conformance::engine_tests!(Postgres::new());
//! }
//! ```
//!
//! # Layout
//! - [`engine`]: what an engine hands to the checks.
//! - [`journal`]: appends, fences, acknowledgements.
//! - [`mailbox`]: what waits for sessions.
//! - [`outbox`]: what is sent to the outside, and what hosts note.
//! - [`sessions`]: the store of sessions.

#![warn(missing_docs)]
#![expect(
    clippy::unwrap_used,
    reason = "a check fails by panicking, as any test"
)]

pub mod engine;
pub mod journal;
pub mod mailbox;
pub mod outbox;
mod samples;
pub mod sessions;

pub use engine::Engine;

/// Makes a test of each check, with a new engine each; the expression makes one.
#[macro_export]
macro_rules! engine_tests {
    ($new:expr) => {
        $crate::engine_tests! { @each $new;
            journal: records_are_kept_in_order,
            journal: another_place_is_refused_whole,
            journal: an_owner_that_was_replaced_is_fenced_and_told,
            journal: of_writers_at_the_same_place_one_wins,
            journal: sessions_that_append_at_once_stay_dense,
            journal: a_batch_is_there_whole_or_not_at_all,
            journal: a_full_journal_refuses_and_keeps_what_it_has,
            journal: the_head_covers_all_records,
            journal: mail_goes_with_the_records_that_tell_of_it,
            journal: mail_stays_where_the_records_are_refused,
            journal: what_cannot_be_acknowledged_is_not_in_the_way,
            journal: mail_is_acknowledged_without_records,
            journal: mail_is_acknowledged_by_one_owner_only,
            journal: records_and_mail_are_there_after_it_was_opened_again,
            mailbox: mail_is_listed_as_it_was_submitted_in_order,
            mailbox: the_same_key_of_a_session_counts_once,
            mailbox: of_many_that_submit_one_key_one_is_accepted,
            mailbox: what_waits_can_be_edited_and_taken_back,
            mailbox: of_an_edit_and_a_withdrawal_neither_is_half_done,
            mailbox: what_is_withdrawn_while_it_is_acknowledged_is_gone_once,
            mailbox: a_session_holds_so_much_and_can_still_be_stopped,
            mailbox: what_is_too_long_is_refused,
            mailbox: a_session_that_is_discarded_has_no_mail,
            mailbox: the_latest_keys_are_remembered_and_numbers_are_never_used_twice,
            mailbox: changes_are_told,
            outbox: a_reply_is_queued_with_its_records_or_not_at_all,
            outbox: the_same_key_is_sent_once,
            outbox: a_final_that_a_tool_said_is_left_out,
            outbox: a_chat_is_sent_in_order_and_delays_no_other,
            outbox: what_may_have_been_sent_is_sent_again_and_counted,
            outbox: what_was_given_up_is_listed_tried_again_and_dropped,
            outbox: a_chat_that_moves_takes_its_messages_along,
            outbox: an_event_counts_once,
            outbox: what_a_host_commits_is_done_whole_or_not_at_all,
            outbox: rows_are_listed_in_order,
            outbox: what_is_to_be_sent_is_there_after_it_was_opened_again,
            outbox: changes_of_the_outbox_are_told,
            sessions: a_session_is_there_from_its_first_records_on,
            sessions: an_id_is_had_once_and_is_no_nonsense,
            sessions: a_session_has_one_owner_at_a_time,
            sessions: a_list_says_what_is_known_and_the_latest_is_first,
            sessions: a_session_that_waits_for_answers_says_so,
            sessions: a_renamed_session_has_one_bounded_line,
            sessions: records_are_read_from_a_place_on,
            sessions: a_history_follows_the_records,
            sessions: a_fork_shares_the_beginning_and_goes_its_own_way,
            sessions: what_is_not_there_is_not_forked,
            sessions: a_removed_session_takes_its_mail_along,
            sessions: what_is_owned_or_has_forks_is_not_removed,
            sessions: what_need_not_be_kept_is_listed_oldest_first,
            sessions: many_sessions_are_taken_at_once,
        }
    };
    (@each $new:expr; $($part:ident: $check:ident,)*) => {
        $(
            #[test]
            fn $check() {
                $crate::run(async { $crate::$part::$check(::std::boxed::Box::new($new)).await });
            }
        )*
    };
}

/// Runs a check on a runtime of its own.
///
/// # Panics
/// When the check does, or there is no runtime to be had.
pub fn run(check: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(check);
}
