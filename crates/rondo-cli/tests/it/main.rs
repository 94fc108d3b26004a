//! The binary as its users meet it: arguments in; standard output, standard error and exit code out.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper that fails must fail its test"
)]

mod ask;
mod attachments;
mod calls;
mod completion;
mod config;
mod configuration;
mod day;
mod designs;
mod detached;
mod doctor;
mod fallback;
mod faults;
mod fork;
mod grants;
mod harness;
mod hub;
mod ignored;
mod journal_file;
mod keeping;
#[cfg(target_os = "linux")]
mod keys;
mod limits;
mod line;
#[cfg(target_os = "linux")]
mod linked;
mod local;
mod mcp;
mod mcp_login;
mod mcp_terminal;
mod memory;
mod models;
mod onboarding;
mod parking;
mod person;
mod policy;
mod process_end;
mod profiles;
mod providers;
mod python;
mod questions;
mod recorder;
mod repl;
mod repl_asks;
mod repl_cells;
mod repl_design;
mod repl_dumb;
mod repl_keys;
mod repl_places;
mod repl_preparing;
mod repl_programs;
mod repl_python;
mod repl_screen;
mod repl_shell;
mod repl_turns;
mod replay;
#[cfg(target_os = "linux")]
mod review;
mod sandbox;
mod sandboxed;
mod screen;
mod screen_cards;
mod screen_commands;
mod screen_desktop;
mod screen_idle;
mod screen_keys;
mod screen_preparing;
mod screen_restored;
mod screen_sessions;
mod screen_shell;
mod screen_tmux;
mod screen_typed;
mod service;
mod sessions;
mod signals;
mod skills;
mod snapshots;
mod subagents;
#[cfg(feature = "otel")]
mod telemetry;
mod terminal;
mod terminal_context;
mod trust;
mod versions;
mod web;
mod wire;
