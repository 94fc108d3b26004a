//! Tools that come and go: what a turn offers, and when it takes up a change.

use super::{Driver, TurnSetup, catalog};
use crate::machine::Input;
use crate::ports::{Tool, ToolScope, ToolSource};
use crate::toolbox::Toolbox;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The turn's own tools and its sources of others.
pub(super) struct Equipment {
    own: Toolbox,
    sources: Vec<Arc<dyn ToolSource>>,
    /// The generations of the offered tools; `None` if the turn offers those of another process.
    offered: Option<Vec<u64>>,
}

impl Equipment {
    /// Adds to the setup what its sources offer.
    pub(super) fn begin(setup: &mut TurnSetup) -> Self {
        let mut equipment = Self {
            own: setup.tools.clone(),
            sources: std::mem::take(&mut setup.tool_sources),
            offered: None,
        };
        if let Some(tools) = equipment.changed(&scope(setup, 1)) {
            setup.tools = tools;
        }
        equipment
    }

    /// Continues the turn after its records: what they offer may not be what there is now.
    pub(super) fn resume(&mut self) {
        self.offered = None;
    }

    /// Returns all tools, if those of a source have changed.
    fn changed(&mut self, scope: &ToolScope) -> Option<Toolbox> {
        if self.sources.is_empty() {
            return None;
        }
        // First, so that a change in between is seen the next time.
        let generations = self.sources.iter().map(|it| heard(|| it.generation()));
        let generations: Vec<u64> = generations.map(Option::unwrap_or_default).collect();
        if self.offered.as_ref() == Some(&generations) {
            return None;
        }
        self.offered = Some(generations);
        let tools = self.sources.iter();
        let tools = tools.filter_map(|it| heard(|| it.tools(scope))).flatten();
        let named: Vec<Arc<dyn Tool>> = tools
            .filter(|tool| heard(|| tool.spec()).is_some())
            .collect();
        let (tools, left_out) = heard(|| self.own.extended(named))?;
        if !left_out.is_empty() {
            tracing::warn!(
                tools = left_out.join(", "),
                "tools of a source are left out"
            );
        }
        Some(tools)
    }
}

/// Returns the result of foreign code; nothing if it panics.
fn heard<T>(say: impl FnOnce() -> T) -> Option<T> {
    let said = catch_unwind(AssertUnwindSafe(say));
    if said.is_err() {
        tracing::warn!("a source of tools panicked");
    }
    said.ok()
}

fn scope(setup: &TurnSetup, step: u32) -> ToolScope {
    ToolScope {
        session: setup.session.clone(),
        turn: setup.turn.clone(),
        step,
    }
}

impl Driver {
    /// Takes up tools that have changed before a step's request is sent for the first time, and returns whether the machine
    /// makes the request again with them.
    pub(super) fn equip(&mut self) -> bool {
        let scope = scope(&self.setup, self.machine.steps());
        let Some(tools) = self.equipment.changed(&scope) else {
            return false;
        };
        self.setup.tools = tools;
        let specs = self.setup.tools.specs();
        if specs == self.machine.config().tools {
            return false;
        }
        self.catalog = catalog(&self.setup).0;
        self.ready.push_front(Input::Equip { specs });
        true
    }
}
