//! A project with a script and a model server.

use crate::harness::{Shown, TestEnv};
use rondo_testkit::Server;
use serde_json::Value;

/// A script and who answers its agents.
pub(crate) struct World {
    pub(crate) env: TestEnv,
    pub(crate) server: Server,
}

impl World {
    /// A project with the file `s.lua`.
    pub(crate) fn new(script: &str, server: Server) -> Self {
        let env = TestEnv::new();
        env.write("s.lua", script);
        Self { env, server }
    }

    /// Runs the script with options of `rondo run`.
    pub(crate) async fn run(&self, options: &[&str]) -> Shown {
        self.run_with(options, &[]).await
    }

    /// Runs it with arguments of its own.
    pub(crate) async fn run_with(&self, options: &[&str], arguments: &[&str]) -> Shown {
        let url = self.server.url("/v1");
        let mut all = vec!["run", "-m", "openai/test", "--base-url", &url];
        all.extend(options);
        all.push("s.lua");
        all.extend(arguments);
        self.env.run(&all).await
    }

    /// The bodies of all requests.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.server.requests().iter().map(|it| it.json()).collect()
    }
}

/// Returns the messages of a request.
pub(crate) fn messages(request: &Value) -> &Vec<Value> {
    request["messages"].as_array().unwrap()
}

/// Returns the names of the tools that a request offers.
pub(crate) fn tools(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools
        .map(|it| it["function"]["name"].as_str().unwrap())
        .collect()
}
