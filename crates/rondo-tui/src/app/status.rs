//! The lines that say what goes on, and how much of what may be used is used.

use super::{App, keys};
use crate::call_line::shortened;
use crate::text::{Row, clean, columns};
use crate::transcript::cut;
use rondo_types::units::dollars;

impl App {
    pub(super) fn activity_line(&self, width: usize) -> Option<String> {
        let preparation = self.preparation();
        let activity = preparation.as_ref().unwrap_or(&self.story.activity);
        let stops = format!(" · {} stops", keys::key_of(keys::Action::Escape));
        let is_still = self.options.is_still;
        activity.line(self.turn, is_still, self.now, (&stops, width))
    }

    /// Returns who answers: the turn that runs, or the next one.
    pub(super) fn model_name(&self) -> String {
        let of_turn = self.story.model.as_ref().filter(|_| self.is_as_latest());
        clean::line(of_turn.unwrap_or(&self.answers.0))
    }

    pub(super) fn profile_name(&self) -> String {
        let of_turn = self.story.profile.as_ref();
        let of_turn = of_turn.filter(|_| self.is_as_latest());
        clean::line(of_turn.unwrap_or(&self.answers.1))
    }

    /// Returns whether who answers is as in the latest turn: it runs, or began since that was chosen. A session that was
    /// opened may have had others.
    fn is_as_latest(&self) -> bool {
        let latest = self.story.totals.latest();
        self.story.is_in_turn || latest.is_some_and(|it| it.began_ms >= self.answers_since)
    }

    pub(super) fn input_title(&self) -> String {
        let title = format!("{} · {}", self.language.name(), self.run_mode.name());
        match &self.vi {
            Some(vi) => format!("{title} · {}", vi.mode().name()),
            None => title,
        }
    }

    pub(super) fn status_row(&self, width: usize) -> Row {
        if let Some(flash) = &self.flash {
            return Row::of(shortened(&format!(" {flash}"), width), self.theme.warn);
        }
        if self.selected.is_some() {
            return Row::of(cut(&selection_hints(), width), self.theme.accent);
        }
        let mut left = format!(" {} · {}", self.model_name(), self.profile_name());
        let mut figures = self.figures();
        if !self.place.is_empty() {
            let placed = format!("{left} · {}", self.place);
            let least = figures.last().map_or(0, |it| columns(it));
            if columns(&placed) + least < width {
                left = placed;
            }
        }
        let taken = |figures: &[String]| columns(&left) + columns(&figures.join(" · ")) + 1;
        // The first and the last say most where there is no room for all.
        while taken(&figures) > width && figures.len() > 2 {
            figures.remove(1);
        }
        let right = figures.join(" · ");
        let free = width.checked_sub(columns(&left) + columns(&right) + 1);
        let whole = match free {
            None => format!(
                "{}… {right}",
                cut(&left, width.saturating_sub(columns(&right) + 2))
            ),
            Some(free) => format!("{left}{}{right}", " ".repeat(free.max(1))),
        };
        Row::of(cut(&whole, width), self.theme.dim)
    }

    /// Returns what is used, of what may be used.
    fn figures(&self) -> Vec<String> {
        let totals = &self.story.totals;
        let mut figures = Vec::new();
        let running = totals.running().filter(|_| self.story.is_in_turn);
        if let Some((turn, limits)) = running.and_then(|it| Some((it, it.limits.as_ref()?))) {
            figures.push(format!("step {}/{}", turn.step(), limits.max_steps));
            if let Some(max) = limits.max_cost {
                let cost = turn.known_cost_usd;
                figures.push(format!("{cost:.3} of {:.2} USD", max.usd()));
            }
        }
        let context = totals.context_tokens.filter(|it| *it > 0);
        match (context, self.context_max.filter(|it| *it > 0)) {
            (Some(context), Some(max)) => {
                figures.push(format!("{}% context", context.saturating_mul(100) / max));
            }
            (Some(context), None) => figures.push(format!("{} tokens", short(context))),
            (None, _) => {}
        }
        let cost = totals.cost_so_far_usd();
        if cost > 0.0 {
            figures.push(dollars(cost));
        }
        if self.story.transcript.is_empty() {
            let hints = ["/ commands", "@ files", "! shell"];
            figures.extend(hints.map(str::to_owned));
        }
        figures.push("? help ".to_owned());
        figures
    }
}

/// Returns what may be done with a selected entry.
fn selection_hints() -> String {
    let hints = [
        (keys::Action::Open, "in full"),
        (keys::Action::CopyEntry, "copies"),
        (keys::Action::RunAgain, "types it again"),
        (keys::Action::Escape, "back"),
    ];
    let hints = hints.map(|(action, does)| format!("{} {does}", keys::key_of(action)));
    format!(" {}", hints.join(" · "))
}

/// Returns a number as people read it.
fn short(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}.{}k", number / 1_000, number % 1_000 / 100),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}
