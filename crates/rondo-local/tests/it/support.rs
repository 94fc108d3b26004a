//! The model under test, loaded once for all tests.

use futures_util::TryStreamExt as _;
use rondo_core::Model as _;
use rondo_local::{CpuEngine, Engine, LocalModel};
use rondo_types::{
    Concurrency, Effects, Message, ModelError, ModelEvent, ModelRequest, Recovery, Sampling,
    ToolChoice, ToolSpec,
};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

const FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
/// Enough for every test; a larger one costs memory.
const CONTEXT: usize = 1_024;

/// Returns the directory of the weights.
///
/// # Panics
/// When they are not here, with how to fetch them.
pub(crate) fn weights() -> PathBuf {
    let given = std::env::var_os("RONDO_MODEL_PATH").map(PathBuf::from);
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let own = cache.map(|cache| cache.join("rondo/models"));
    given
        .into_iter()
        .chain(own)
        .map(|directory| directory.join(FILE))
        .find(|path| path.is_file())
        .expect("the weights are here; `rondo models pull smollm2-135m` fetches them")
}

/// Returns a fresh engine; the weights are shared.
pub(crate) fn engine() -> Box<dyn Engine> {
    static ENGINE: OnceLock<Mutex<CpuEngine>> = OnceLock::new();
    let loaded = ENGINE.get_or_init(|| {
        let engine = CpuEngine::load(&weights(), CONTEXT).expect("the weights can be loaded");
        Mutex::new(engine)
    });
    let engine = loaded.lock().unwrap_or_else(PoisonError::into_inner);
    engine.fork().expect("there is memory for a copy")
}

/// Returns the likeliest token, and how far its logit is above the second's.
pub(crate) fn top(logits: &[f32]) -> (u32, f32) {
    let mut best = (0, f32::NEG_INFINITY);
    let mut second = f32::NEG_INFINITY;
    for (token, logit) in (0..).zip(logits) {
        if *logit > best.1 {
            second = best.1;
            best = (token, *logit);
        } else if *logit > second {
            second = *logit;
        }
    }
    (best.0, best.1 - second)
}

/// Returns a request of a few words.
pub(crate) fn request(messages: Vec<Message>, tools: Vec<ToolSpec>) -> ModelRequest {
    ModelRequest {
        model: "m".into(),
        system: Vec::new().into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::new(tools),
        tool_choice: ToolChoice::Auto,
        sampling: Sampling::default(),
        response_schema: None,
    }
}

/// Returns a tool that takes those parameters.
pub(crate) fn tool(name: &str, parameters: &Value) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: "Does something.".into(),
        parameters: parameters.clone(),
        effects: Effects::Writes,
        concurrency: Concurrency::Exclusive,
        recovery: Recovery::AtMostOnce,
        ..ToolSpec::default()
    }
}

/// Asks a model and returns all that it says.
pub(crate) fn ask(
    model: &LocalModel,
    request: ModelRequest,
) -> Result<Vec<ModelEvent>, ModelError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(model.stream(Arc::new(request)).try_collect())
}
