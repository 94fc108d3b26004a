//! The default model itself: no key, no configuration, no server, nothing scripted.

use crate::harness::{TestEnv, calls, says, serve};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const FILE: &str = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf";

/// Returns the directory that has the default model's weights.
///
/// # Panics
/// When none has, with how to fetch them.
fn weights() -> PathBuf {
    let given = std::env::var_os("RONDO_MODEL_PATH").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let own = cache.or(home).map(|cache| cache.join("rondo/models"));
    given
        .into_iter()
        .chain(own)
        .find(|directory| directory.join(FILE).is_file())
        .expect("the weights are here; `rondo models pull` fetches them")
}

#[tokio::test]
async fn the_default_model_answers_after_a_call() {
    let env = TestEnv::new().var("RONDO_MODEL_PATH", weights().to_str().unwrap());
    for name in ["main.py", "engine.py", "paint.py", "nav.py", "notes.txt"] {
        env.write(&format!("src/{name}"), "print('a line of code')\n");
    }
    // What is asked of files may be answered from what the model is shown of them beforehand.
    let question = "Run the command `wc -l src/main.py` and tell me what it prints.";
    let shown = env
        .run(&["ask", "--yolo", "--output-format", "json", question])
        .await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stderr.contains("It is small"), "{}", shown.stderr);
    let result: Value = serde_json::from_str(&shown.stdout).unwrap();
    // Whether its answers are right is measured by `cargo xtask eval-local`: kernels differ by
    // processor, so no single answer is promised.
    assert_ne!(result["text"].as_str().unwrap().trim(), "", "{result}");
    assert!(result["tool_calls"].as_u64() > Some(0), "{result}");
}

#[tokio::test]
async fn a_search_that_found_nothing_is_told_which_words_occur() {
    let search = || {
        let command = "grep -n 'lamps in March' sales.csv";
        vec![calls("exec", &json!({ "command": command })), says("None.")]
    };
    let rule = "[[rule]]\ntool = \"read_file\"\ndecision = \"deny\"\n";
    for (profile, rules, is_told) in [
        ("local", "", true),
        ("local", rule, false),
        ("default", "", false),
    ] {
        let server = serve(search()).await;
        let env = TestEnv::new();
        env.write("sales.csv", "month,product,units\nMarch,lamp,58\n");
        env.user_policy(rules);
        let shown = env
            .ask(&server, &["--yolo", "--profile", profile, "Any news?"])
            .await;
        assert_eq!(shown.code, Some(0), "{shown:?}");
        let read = server.requests().pop().unwrap().json().to_string();
        let told = "(Words that do occur: `lamp` in sales.csv, `March` in sales.csv)";
        assert_eq!(read.contains(told), is_told, "{profile} {rules}: {read}");
    }
}
