use crate::fixture::Fixture;
use serde_json::json;

#[tokio::test]
async fn output_over_the_bound_keeps_both_ends_and_spills_the_whole() {
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
async fn output_at_the_bound_is_whole() {
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
