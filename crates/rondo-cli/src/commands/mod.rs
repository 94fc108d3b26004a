//! One file for each command, and what they share.

mod answer;
pub(crate) mod ask;
mod attach;
mod chat;
pub(crate) mod clipboard;
pub(crate) mod completion;
mod config;
mod context;
mod cron;
mod dispatch;
mod doctor;
pub(crate) mod editor;
mod fork;
mod mcp;
mod memory;
mod models;
mod outbox;
mod policy;
mod profiles;
mod replay;
pub(crate) mod report;
mod script;
mod serve;
mod session;
pub(crate) mod skills;
mod test;
mod trust;
mod usage;
mod users;
mod wire;

pub use dispatch::run;
pub(crate) use session::table as session_table;
