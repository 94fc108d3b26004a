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
