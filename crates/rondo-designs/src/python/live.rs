//! A live Python session behind the design's capabilities.

use super::capabilities::{
    BoundedDir, BoundedDoc, BoundedRepr, CapabilityError, CapabilityProvider, CapabilityResult,
    EvalResult, ExceptionInfo, GlobalInfo, TypeInfo,
};
use async_trait::async_trait;
use rondo_python::{Capability, CellLimits, Session};
use rondo_types::{ToolError, ToolErrorCode, ToolOutcome};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;

/// A live Python session as the design's capabilities: an interpreter of its own, whose variables
/// stay from question to question.
///
/// ```no_run
/// use rondo::design::python::{AgentConfig, LiveSession, ModelProvider, run_question};
/// use rondo::python::{LiveOutput, Session, Settings, CellLimits};
/// use std::sync::Arc;
///
/// # async fn ask(provider: ModelProvider) -> anyhow::Result<()> {
/// let settings = Settings::from_env("/work".into()).expect("there is a `python3`");
/// let session = Arc::new(Session::new(settings));
/// session.run_cell("x = [1, 2]", LiveOutput::discard(), CellLimits::default()).await?;
/// let live = LiveSession::new(session);
/// let answer = run_question(&provider, &live, "What is x?", &AgentConfig::default()).await?;
/// # let _ = answer;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct LiveSession {
    session: Arc<Session>,
}

impl LiveSession {
    /// Takes the session, which others may use too. Callers are served in the order in which they asked.
    #[must_use]
    pub fn new(session: Arc<Session>) -> Self {
        Self { session }
    }

    async fn call<T: DeserializeOwned>(
        &self,
        capability: Capability,
        arguments: Value,
    ) -> CapabilityResult<T> {
        // The question ends a call by dropping it.
        let outcome = self
            .session
            .call(capability, &arguments, CellLimits::default());
        match outcome.await {
            ToolOutcome::Ok(output) => serde_json::from_value(output.value)
                .map_err(|err| CapabilityError::Internal(err.to_string())),
            ToolOutcome::Error(error) => Err(failure(error)),
        }
    }

    async fn look<T: DeserializeOwned>(
        &self,
        capability: Capability,
        expr: &str,
    ) -> CapabilityResult<T> {
        self.call(capability, json!({ "expr": expr })).await
    }
}

#[async_trait]
impl CapabilityProvider for LiveSession {
    async fn list_globals(&self) -> CapabilityResult<Vec<GlobalInfo>> {
        #[derive(Deserialize)]
        struct Found {
            globals: Vec<GlobalInfo>,
        }
        let found: Found = self.call(Capability::ListGlobals, json!({})).await?;
        Ok(found.globals)
    }

    async fn get_type(&self, expr: &str) -> CapabilityResult<TypeInfo> {
        self.look(Capability::GetType, expr).await
    }

    async fn get_repr(&self, expr: &str) -> CapabilityResult<BoundedRepr> {
        self.look(Capability::GetRepr, expr).await
    }

    async fn get_dir(&self, expr: &str) -> CapabilityResult<BoundedDir> {
        self.look(Capability::GetDir, expr).await
    }

    async fn get_doc(&self, expr: &str) -> CapabilityResult<BoundedDoc> {
        self.look(Capability::GetDoc, expr).await
    }

    async fn eval_expr(&self, expr: &str) -> CapabilityResult<EvalResult> {
        self.look(Capability::EvalExpr, expr).await
    }

    async fn get_last_exception(&self) -> CapabilityResult<Option<ExceptionInfo>> {
        #[derive(Deserialize)]
        struct Found {
            exception: Option<ExceptionInfo>,
        }
        let found: Found = self.call(Capability::GetLastException, json!({})).await?;
        Ok(found.exception)
    }
}

fn failure(error: ToolError) -> CapabilityError {
    match error.code {
        ToolErrorCode::PythonException => match serde_json::from_value(error.details) {
            Ok(exception) => CapabilityError::PythonException(exception),
            Err(_) => CapabilityError::Internal(error.message),
        },
        ToolErrorCode::InvalidArgs => CapabilityError::InvalidArgs(error.message),
        _ => CapabilityError::Internal(error.message),
    }
}
