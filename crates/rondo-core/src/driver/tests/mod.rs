//! The driver under paused time, with scripted models and tools.

mod bounds;
mod cancel;
mod fakes;
mod journal;
mod simulation;
