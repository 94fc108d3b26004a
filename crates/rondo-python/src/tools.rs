//! The functions of a session as tools of an agent.

use crate::capability::{Capability, ReadOnlyNames};
use crate::cell::{CellLimits, LiveOutput};
use crate::session::Session;
use async_trait::async_trait;
use rondo_core::ports::{Tool, ToolInvocation};
use rondo_types::{ToolOutcome, ToolSpec};
use std::sync::Arc;

/// Returns the session's functions as tools, in the order of [`Capability::ALL`].
///
/// Those that only look are shared and need no approval; `eval_expr` and `run_code` may do
/// anything, and say so.
#[must_use]
pub fn tools(session: &Arc<Session>, looks: ReadOnlyNames) -> Vec<Arc<dyn Tool>> {
    let tool = |capability| {
        let session = Arc::clone(session);
        Arc::new(PythonTool {
            session,
            capability,
            looks,
        }) as Arc<dyn Tool>
    };
    Capability::ALL.map(tool).into()
}

struct PythonTool {
    session: Arc<Session>,
    capability: Capability,
    looks: ReadOnlyNames,
}

#[async_trait]
impl Tool for PythonTool {
    fn spec(&self) -> ToolSpec {
        self.capability.spec()
    }

    /// Code is interrupted when the call is cancelled; its interpreter is ended if it takes no
    /// notice.
    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        // The driver fires the token when the call's time is over.
        let until = CellLimits {
            cancel: invocation.cancel,
            ..CellLimits::default()
        };
        let output = invocation.output;
        let live = LiveOutput::new(move |_, text| output.push(text));
        let function = (self.capability, self.looks);
        self.session
            .call_with(function, &invocation.arguments, until, live)
            .await
    }
}
