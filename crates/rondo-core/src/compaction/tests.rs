//! Tests: texts that are cut in their middle.

use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_cut_text_keeps_its_bound_its_beginning_and_its_end(
        text in "[a-zäß€\\n]{0,400}",
        bytes in 48_usize..300,
    ) {
        let cut = shorten_text(&text, bytes);
        prop_assert!(cut.len() <= bytes);
        if text.len() <= bytes {
            prop_assert_eq!(cut, text);
        } else {
            let (head, rest) = cut.split_once("\n[").unwrap();
            let (_, tail) = rest.split_once("]\n").unwrap();
            prop_assert!(text.starts_with(head));
            prop_assert!(text.ends_with(tail));
        }
    }
}

/// A conversation in which each group has its question, so many steps of a call and its result, and an answer.
fn conversation(steps_of_groups: &[u32]) -> Transcript {
    let mut transcript = Transcript::new();
    for (turn, steps) in (1..).zip(steps_of_groups) {
        transcript.push(Arc::new(Message::user(format!("question {turn}"))));
        for step in 0..*steps {
            let id = rondo_types::CallId::generated(turn, step, 0);
            let mut asks = Message::assistant("");
            asks.parts = vec![Part::ToolCall(rondo_types::ToolCall {
                id: id.clone(),
                wire_id: None,
                name: "look".to_owned(),
                arguments: "{}".to_owned(),
                complete: true,
                opaque: None,
            })];
            transcript.push(Arc::new(asks));
            let result = ToolResult {
                call_id: id,
                wire_id: None,
                name: "look".to_owned(),
                error: None,
                content: ToolContent::Text("seen".to_owned()),
                blocks: Vec::new(),
                synthetic: false,
            };
            transcript.push(Arc::new(Message::tool_results(vec![result])));
        }
        transcript.push(Arc::new(Message::assistant(format!("answer {turn}"))));
    }
    transcript
}

fn limited(steps_of_groups: &[u32], max: usize, keep: Option<usize>) -> Transcript {
    let mut transcript = conversation(steps_of_groups);
    for change in limit_count(&transcript, HistoryBound { max, keep }) {
        change.apply(&mut transcript);
    }
    assert!(crate::pairing::is_paired(&transcript));
    transcript
}

#[test]
fn hub_28_the_oldest_groups_go_at_the_bound_and_none_is_split() {
    // Groups of 6 messages.
    let left = |groups: usize, max| limited(&vec![2; groups], max, Some(max)).len();
    assert_eq!([left(5, 30), left(5, 31), left(5, 29)], [30, 30, 24]);
    assert_eq!((left(9, 50), left(8, 48), left(8, 47)), (48, 48, 42));
    let texts = limited(&[0, 1, 0], 5, Some(5));
    assert_eq!(texts[0].text(), "question 3");
}

#[test]
fn history_goes_in_blocks_where_fewer_stay_than_may() {
    let left = |groups: usize| limited(&vec![0; groups], 50, Some(25)).len();
    assert_eq!((left(25), left(26)), (50, 24));
}

#[test]
fn a_longer_exchange_keeps_its_question_and_its_latest_steps() {
    let kept = limited(&[1, 30], 50, Some(10));
    assert_eq!(kept.len(), 9);
    assert_eq!(kept[0].text(), "question 2");
    assert!(
        kept[1].synthetic && kept[1].text().contains("54 messages"),
        "{}",
        kept[1].text()
    );
    assert_eq!(kept[8].text(), "answer 2");
    assert_eq!(limited(&[30], 50, None), Transcript::new());
    for keep in 0..4 {
        let kept = limited(&[1, 30], 50, Some(keep));
        assert_eq!(kept[0].text(), "question 2", "{keep}");
    }
    let mut public = conversation(&[1, 30]);
    keep_latest(&mut public, 10);
    assert_eq!(public, kept);
}
