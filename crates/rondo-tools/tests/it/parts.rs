use crate::bench::Bench;
use proptest::prelude::*;
use serde_json::json;
use tokio::runtime::Builder;

/// Reads a file part by part, going on where each part says, and returns what the parts hold.
async fn in_parts(bench: &Bench, limit: usize) -> String {
    let mut content = String::new();
    let mut offset = 1;
    loop {
        let arguments = json!({"path": "f", "offset": offset, "limit": limit});
        let text = bench.text("read_file", arguments).await;
        let (head, body) = text.split_once('\n').unwrap();
        content.push_str(body);
        let Some((_, next)) = head.split_once("next offset ") else {
            return content;
        };
        let next: usize = next.split([';', ']']).next().unwrap().parse().unwrap();
        assert!(next > offset);
        offset = next;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hub_34_parts_put_together_are_the_file(
        content in "([a-z\u{e9}\u{4e8c} ]{0,8}\n){0,30}[a-z]{0,3}",
        limit in 1_usize..12,
    ) {
        let bench = Bench::new();
        bench.file("f", &content);
        let runtime = Builder::new_current_thread().build().unwrap();
        prop_assert_eq!(runtime.block_on(in_parts(&bench, limit)), content);
    }
}
