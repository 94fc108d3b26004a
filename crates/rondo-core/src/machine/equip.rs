//! Tools that change between two steps.

use super::budget::NextRequest;
use super::finish::Ending;
use super::turn::{Cx, TurnMachine};
use rondo_types::{EventBody, ToolSpec};
use std::sync::Arc;

impl TurnMachine {
    /// Makes the request of the step again with other tools, if it still fits the limits.
    pub(super) fn equip(&mut self, cx: &mut Cx<'_>, specs: Arc<Vec<ToolSpec>>) {
        if !self.holds_request_of_step() || self.goes_on_with_reply() {
            return;
        }
        self.note_tools_checked();
        self.config.tools = specs;
        self.spent.note_tools(&self.config);
        let tools = self.config.tools.iter();
        cx.emit(EventBody::ToolsChanged {
            tools: tools.map(|spec| spec.name.clone()).collect(),
        });
        match self.next_allowance() {
            NextRequest::Nothing(reason) => self.finish(cx, Ending::stopped(reason)),
            _ => self.send_request(cx),
        }
    }
}
