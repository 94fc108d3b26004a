//! The driver under paused time, with scripted models and tools.

mod asking;
mod bounds;
mod budgets;
mod cancel;
mod children;
mod cut_replies;
mod doubt;
mod equip;
mod fakes;
mod fallback;
mod given_up;
mod grants;
mod intercept;
mod journal;
mod outputs;
mod parking;
mod queue;
mod replay;
mod resume;
mod simulation;
