//! Tests of the sandbox on the kernel that they run on.

#![expect(
    clippy::unwrap_used,
    reason = "what a test sets up must work; helpers are outside of what the lint takes for tests"
)]

#[cfg(target_os = "linux")]
mod attacks;
#[cfg(target_os = "linux")]
mod git_settings;
#[cfg(target_os = "linux")]
mod hidden;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod partial;
#[cfg(target_os = "linux")]
mod place;
#[cfg(target_os = "linux")]
mod repositories;
#[cfg(target_os = "linux")]
mod settings;
#[cfg(target_os = "linux")]
mod toolchains;
