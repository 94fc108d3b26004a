use crate::fixture::{Fixture, result};
use rondo_core::ports::{OutputSink, Tool};
use rondo_exec::ExecTool;
use serde_json::json;
use std::process::Command;

#[tokio::test]
async fn gs_f5_output_over_the_bound_keeps_both_ends_and_spills_the_whole() {
    let mut fixture = Fixture::new();
    fixture.options.output_bytes_max = 1000;
    let result = fixture.run("seq 10000").await;
    let (out, path) = (
        result["stdout"].as_str().unwrap(),
        result["full_output"].as_str().unwrap(),
    );
    assert_eq!(result["truncated"], json!(true));
    assert!(out.starts_with("1\n2\n3\n"));
    assert!(out.ends_with("9999\n10000\n"));
    assert!(out.contains(&format!("the whole output is in {path}")));
    let whole: String = (1..=10000).map(|n| format!("{n}\n")).collect();
    assert_eq!(std::fs::read_to_string(path).unwrap(), whole);
    assert_eq!(fixture.live(), whole);
}

#[tokio::test]
async fn gs_f5_output_at_the_bound_is_whole() {
    let mut fixture = Fixture::new();
    for (bound, truncated) in [(5999, true), (6000, false), (6001, false)] {
        fixture.options.output_bytes_max = bound;
        let result = fixture.run("yes 12345 | head -n 1000").await;
        assert_eq!(result.get("truncated").is_some(), truncated, "{bound}");
    }
}

#[tokio::test]
async fn a_gigabyte_costs_bounded_memory_and_a_bounded_file() {
    let mut fixture = Fixture::new();
    fixture.options.spill_bytes_max = 1 << 20;
    let command = "yes | head -c 1G; grep VmHWM /proc/$PPID/status";
    let result = fixture.run(command).await;
    let out = result["stdout"].as_str().unwrap();
    let peak = out.rsplit("VmHWM:").next().unwrap();
    let peak_kb: u64 = peak.trim().trim_end_matches(" kB").trim().parse().unwrap();
    assert!(peak_kb < 32 << 10, "{peak_kb} kB");
    assert!(out.len() < 51_000);
    let spill = std::fs::metadata(result["full_output"].as_str().unwrap()).unwrap();
    assert_eq!(spill.len(), 1 << 20);
    assert!(out.contains("up to the limit of the file"));
}

/// The command ends only because its first line reached the callback while it ran.
#[tokio::test]
async fn gs_f3_output_reaches_a_callback_while_the_command_runs() {
    let fixture = Fixture::new();
    let made = Command::new("mkfifo")
        .arg(fixture.path().join("go"))
        .status();
    assert!(made.unwrap().success());
    let go = fixture.path().join("go");
    let mut invocation = fixture.invocation(json!({
        "command": "echo first; read x < go; echo \"second $x\""
    }));
    let (seen, pieces) = std::sync::mpsc::channel();
    invocation.output = OutputSink::new(move |text| {
        if text.contains("first") {
            let go = go.clone();
            // Opening a pipe waits for its reader.
            std::thread::spawn(move || std::fs::write(go, "on\n").unwrap());
        }
        seen.send(text).unwrap();
    });
    let tool = ExecTool::exec(fixture.options.clone());
    let result = result(tool.call(invocation).await);
    assert_eq!(result["stdout"], "first\nsecond on\n");
    drop(tool);
    assert_eq!(pieces.try_iter().collect::<String>(), "first\nsecond on\n");
}
