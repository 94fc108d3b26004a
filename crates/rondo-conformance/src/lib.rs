//! Promises of every engine behind `rondo_core::storage::Storage`, as tests that need only a constructor.
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
//! - [`engine`]: the parts that an engine hands to the checks.
//! - [`journal`]: appends, fences, acknowledgements.
//! - [`mailbox`]: messages that wait for sessions.
//! - [`outbox`]: messages to the outside, and rows of hosts.
//! - [`sessions`]: the store of sessions.
//! - [`lookups`]: sessions found by name, lineage, directory and state.
//! - [`budgets`]: budgets that processes share.
//! - [`maintenance`]: checks, export and import, room.
//! - [`samples`]: records and mail, for tests of an engine of its own too.

#![warn(missing_docs)]
#![expect(
    clippy::unwrap_used,
    reason = "a check fails by panicking, as any test"
)]

pub mod budgets;
pub mod engine;
pub mod journal;
pub mod lookups;
pub mod mailbox;
pub mod maintenance;
pub mod outbox;
pub mod samples;
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
            mailbox: what_is_edited_before_it_is_acknowledged_stays,
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
            sessions: many_sessions_are_taken_at_once,
            lookups: a_session_is_found_by_what_names_it_alone,
            lookups: children_belong_to_their_parent,
            lookups: a_directory_has_its_latest_session,
            lookups: turns_that_were_cut_off_are_listed,
            lookups: the_end_of_the_last_turn_is_known,
            lookups: a_late_turn_begins_within_the_last_records,
            lookups: records_are_visited_in_order_until_that_is_enough,
            budgets: a_claim_fits_up_to_the_bound,
            budgets: the_first_limit_that_a_claim_does_not_fit_is_named,
            budgets: each_scope_counts_what_belongs_to_it,
            budgets: two_processes_cannot_both_take_the_last_of_a_budget,
            budgets: what_was_used_before_is_counted_once,
            budgets: a_removed_session_leaves_its_days_as_they_are,
            budgets: what_is_held_back_for_no_session_is_given_back,
            maintenance: a_sound_session_is_reported_sound,
            maintenance: an_exported_session_is_imported_as_it_was,
            maintenance: a_torn_file_is_imported_and_a_changed_one_is_not,
            maintenance: what_need_not_be_kept_is_listed_oldest_first,
            maintenance: room_is_returned_and_the_rest_stays,
            maintenance: each_commit_changes_the_version,
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
/// When the check does, or there is no runtime.
pub fn run(check: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(check);
}
