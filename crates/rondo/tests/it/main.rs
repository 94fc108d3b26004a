//! Whole turns through the library, with the real dialects over real sockets.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what fails here must fail its test"
)]
#![expect(
    clippy::duplicate_mod,
    reason = "each example brings the module that finds its model"
)]

mod agents;
mod chaos;
mod design_call_limits;
mod design_executor;
mod design_hub;
mod design_hub_parts;
mod design_provider;
mod design_python;
mod design_react;
mod design_shell;
mod design_stream;
mod design_surface;
mod durable;
mod examples;
mod faults;
mod hub;
mod limits;
mod log;
mod pauses;
mod promises;
mod python;
mod react;
mod sessions;
mod shell;
mod stream;
mod support;
mod surface;
