//! Questions over a live Python session, through the binary.

use crate::harness::TestEnv;
use rondo_testkit::{
    CallScript, Recorded, ReplyScript, Response, Script, Server, assert_paired, gemini,
};
use serde_json::{Value, json};

fn call(name: &str, arguments: &Value) -> CallScript {
    CallScript::without_id(name, arguments)
}

fn eval(expr: &str) -> CallScript {
    call("eval_expr", &json!({ "expr": expr }))
}

/// Makes the calls, then answers with the results it was given.
async fn server(made: Vec<CallScript>) -> Server {
    let answer = move |request: &Recorded| -> Response {
        let body = request.json();
        assert_paired(&body);
        let reply = match body["contents"].as_array().unwrap().len() {
            1 => ReplyScript::calls(made.clone()),
            _ => ReplyScript::text([told(&responses(&body))]),
        };
        gemini::whole(&reply)
    };
    Server::start(Script::answering(answer)).await
}

fn responses(body: &Value) -> Vec<Value> {
    let parts = body["contents"][2]["parts"].as_array().unwrap();
    let responses = parts
        .iter()
        .map(|part| &part["functionResponse"]["response"]);
    responses.cloned().collect()
}

/// `a, b, c`
fn told(responses: &[Value]) -> String {
    let values = responses.iter().map(|response| match &response["result"] {
        Value::Null => response["error"]["message"].to_string(),
        result => match &result["value_repr"] {
            Value::String(text) => text.clone(),
            _ => result.to_string(),
        },
    });
    values.collect::<Vec<_>>().join(", ")
}

fn env(server: &Server) -> TestEnv {
    TestEnv::new()
        .var("GEMINI_API_KEY", "k-123456789")
        .var("GEMINI_MODEL", "gemini-2.5-flash")
        .var("GOOGLE_GEMINI_BASE_URL", &server.url(""))
}

#[tokio::test]
async fn py_27_py_28_py_29_py_40_a_question_is_answered_with_values_of_a_live_session() {
    let server = server(vec![
        eval("globals().update(x=[6, 7])"),
        eval("x[0] * x[1]"),
        call("get_type", &json!({"expr": "x"})),
        call("list_globals", &json!({})),
        eval("__import__('os').path.basename(__import__('os').getcwd())"),
        eval("__import__('os').environ.get('GEMINI_API_KEY')"),
    ])
    .await;
    let env = env(&server);
    let shown = env.run(&["ask", "--profile", "python", "What is x?"]).await;
    let answer = "None, 42, {\"name\":\"list\",\"module\":\"builtins\",\"qualified\":\"builtins.list\"}, \
                  {\"globals\":[{\"name\":\"x\",\"type_name\":\"list\"}]}, 'project', None\n";
    shown.check(answer, "", 0);
    assert_eq!(server.requests().len(), 2);
    let declared = &server.requests()[0].json()["tools"][0]["functionDeclarations"];
    assert_eq!(declared.as_array().unwrap().len(), 8);
}

#[tokio::test]
async fn code_is_asked_about_outside_of_the_design_and_looks_call_nothing() {
    let server = server(vec![
        call("run_code", &json!({"code": "x = 1"})),
        eval("1 + 1"),
        call("get_repr", &json!({"expr": "print()"})),
        call("get_repr", &json!({"expr": "1 + 1"})),
        call("get_repr", &json!({"expr": "len"})),
    ])
    .await;
    let env = env(&server);
    env.user_config(
        "[profiles.mine]\nextends = 'python'\ntools = ['run_code', 'eval_expr', 'get_repr']\nallowed_tools = []\n",
    );
    env.run(&["ask", "--profile", "mine", "What is x?"]).await;
    let responses = responses(&server.requests()[1].json());
    let codes = |at: usize| &responses[at]["error"]["details"]["code"];
    assert_eq!(
        (codes(0), codes(1)),
        (&json!("denied"), &json!("denied")),
        "{responses:?}"
    );
    assert_eq!(responses[2]["error"]["code"], "invalid_args");
    assert_eq!(responses[3]["error"]["code"], "invalid_args");
    assert_eq!(responses[4]["result"]["repr"], "<built-in function len>");

    let again = server_of_run_code().await;
    let shown = crate::python::env(&again);
    shown.user_config("[profiles.mine]\nextends = 'python'\ntools = ['run_code']\n");
    shown.run(&ALLOWED).await.check("42\n", "", 0);
}

/// Asks with a profile of the user's own that may run code.
const ALLOWED: [&str; 6] = [
    "ask",
    "--profile",
    "mine",
    "--allowed-tools",
    "run_code",
    "What is x?",
];

/// Modules that an interpreter imports when it starts, when it looks and when a look fails.
const PLANTED: &str = "ast abc codecs codeop io json keyword linecache os posixpath runpy site sitecustomize stat \
                       tokenize traceback types usercustomize warnings zipimport _colorize";

#[tokio::test]
async fn nothing_of_the_project_runs_where_the_model_only_looks() {
    let server = server(vec![
        call("list_globals", &json!({})),
        call("inspect", &json!({"expr": "len"})),
        call("get_repr", &json!({"expr": "missing"})),
    ])
    .await;
    for path in ["", ".", ":/opt", "PROJECT", "src:PROJECT/lib/../src"] {
        let env = env(&server);
        let project = env.project().display().to_string();
        let plant = format!(
            "open({:?}, 'w')\nraise SystemExit(5)",
            format!("{project}/ran")
        );
        for folder in ["", "src/"] {
            for name in PLANTED.split(' ') {
                env.write(&format!("{folder}{name}.py"), &plant);
            }
        }
        env.write("x.pth", "import sitecustomize");
        env.write(
            "pyvenv.cfg",
            "home = .\ninclude-system-site-packages = false",
        );
        env.user_config("[profiles.mine]\nextends = 'python'\ntools = ['list_globals', 'inspect', 'get_repr']\n");
        let env = env
            .var("PYTHONPATH", &path.replace("PROJECT", &project))
            .var("PYTHONPYCACHEPREFIX", "cache")
            .var("PYTHONUSERBASE", &project)
            .var("PYTHONHOME", ".");
        let shown = env.run(&["ask", "--profile", "mine", "What is x?"]).await;
        let answer = "{\"globals\":[]}, ";
        assert!(shown.stdout.starts_with(answer), "{path}: {shown:?}");
        assert!(!env.project().join("ran").exists(), "{path}");
    }
}

#[tokio::test]
async fn code_that_was_allowed_finds_modules_and_variables_as_it_would_without_rondo() {
    let code = "import os, sys, mine\nmine.value, os.environ['PYTHONPATH'], 'PYTHONNOUSERSITE' in os.environ";
    let server = server(vec![call("run_code", &json!({ "code": code }))]).await;
    let env = env(&server)
        .var("PYTHONPATH", "src:")
        .var("PYTHONUSERBASE", "base");
    env.write("src/mine.py", "value = 5");
    env.user_config("[profiles.mine]\nextends = 'python'\ntools = ['run_code']\n");
    env.run(&ALLOWED).await.check("(5, 'src:', False)\n", "", 0);
}

async fn server_of_run_code() -> Server {
    server(vec![call("run_code", &json!({"code": "x = 6\nx * 7"}))]).await
}

#[tokio::test]
async fn a_missing_interpreter_is_a_result_that_says_so() {
    let server = server(vec![eval("1 + 1")]).await;
    let env = env(&server).var("RONDO_PYTHON", "/nowhere/python3");
    let shown = env
        .run(&["ask", "--profile", "python", "What is 1 + 1?"])
        .await;
    assert!(
        shown.stdout.contains("/nowhere/python3"),
        "{}",
        shown.stdout
    );
    assert_eq!(shown.code, Some(0));
}

/// Returns once the file has text.
async fn written(path: &std::path::Path) -> String {
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => tokio::task::yield_now().await,
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_busy_interpreter_ends_with_a_killed_program() {
    let code =
        "import os\nwith open('pid', 'w') as f: f.write(f'{os.getpid()}\\n')\nwhile True: pass";
    let server = server(vec![eval(&format!("exec({code:?})"))]).await;
    let env = env(&server);
    let mut child = env
        .command(&["ask", "--profile", "python", "q"])
        .spawn()
        .unwrap();
    let pid = written(&env.project().join("pid")).await;
    child.kill().await.unwrap();
    let stat = std::path::Path::new("/proc").join(pid).join("stat");
    // A zombie has ended, whichever process collects it.
    let is_alive = || {
        let stat = std::fs::read_to_string(&stat).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    while is_alive() {
        tokio::task::yield_now().await;
    }
}
