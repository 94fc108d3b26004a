//! The driver under paused time, with scripted models and tools.

mod bounds;
mod cancel;
mod fallback;
mod fakes;
mod journal;
mod queue;
mod simulation;
