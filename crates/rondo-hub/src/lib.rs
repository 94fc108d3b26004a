//! The hub: a gateway through which people and programs reach sessions, by any number of channels.
//!
//! A received event is durable before it is acknowledged, in one transaction with its id, so that a duplicate
//! has no further effect. The answer of a turn is a row of the outbox, in one transaction with the turn's
//! last record. So a process may end anywhere: the next one continues.
//!
//! # Layout
//! - [`channel`]: channels, and the messages they receive and send. A channel is one type that implements
//!   [`Channel`](channel::Channel).
//! - [`hub`]: the hub, opened and run; [`config`]: the table `[hub]`.
//! - [`inbox`]: where channels hand in what they receive; `receive`: what comes of it; [`commands`]: what begins with a slash.
//! - [`users`]: who may speak; [`authorise`]: who may do what.
//! - [`chats`]: which session a chat talks to; `models`: which model it has named; `host`: what its turns are given, by the role of who asks.
//! - [`extending`]: what the owner adds to the turns of all chats.
//! - [`questions`]: what turns ask, and how an answer finds its question.
//! - [`outgoing`], `delivery`: what is queued for a chat, and how it is sent; `left_over`: its files, which go afterwards; `undelivered`: who is told what never can be; `progress`: what chats see meanwhile.
//! - `context`: what a turn's model reads first, from the workspace; `calibration`: how its tokens are counted; `tools`: what it may do besides; [`cron`]: timed work.
//! - [`api`]: the channel over HTTP; [`keys`]: its keys; [`client`]: talks to it; [`accounts`]: users with their keys.
//! - [`connections`]: the connections of channels that listen, bounded for each address.
//! - `elsewhere`: what other processes do with turns that wait for answers; [`exclusive`]: one process serves local data at a time.
//! - [`onboarding`]: a new workspace.
//! - [`states`]: which channels receive, and why others do not.
//! - `retention`: sessions that are removed once they are old.
//! - `recovery`: what happens after a crash or a failure, and `suspects`: what may have been its cause; `shortage`: while nothing can be noted. [`metrics`]: what is counted.

pub mod accounts;
pub mod api;
mod attachments;
pub mod authorise;
mod calibration;
pub mod channel;
pub mod chats;
pub mod client;
pub mod commands;
pub mod config;
pub mod connections;
mod context;
pub mod cron;
mod delivery;
mod elsewhere;
pub mod exclusive;
pub mod extending;
mod host;
pub mod hub;
pub mod inbox;
pub mod keys;
mod left_over;
pub mod metrics;
mod models;
pub mod onboarding;
pub mod outgoing;
mod progress;
pub mod questions;
mod receive;
mod recovery;
mod retention;
mod set_aside;
mod shortage;
pub mod states;
mod suspects;
mod tools;
mod undelivered;
pub mod users;

pub use config::HubConfig;
pub use hub::Hub;
