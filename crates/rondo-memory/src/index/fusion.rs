//! Several ranked lists as one, by reciprocal rank fusion.
//!
//! Scores of different kinds cannot be compared, their ranks can. Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion
//! outperforms Condorcet and individual Rank Learning Methods", SIGIR 2009, found k = 60 and that it hardly matters.

use std::collections::HashMap;

/// The constant of the method.
const K: f64 = 60.0;

/// Returns the rows of all lists with their scores, the best first; of equal ones the latest row is first.
pub(super) fn fuse(lists: &[(f64, Vec<i64>)]) -> Vec<(i64, f64)> {
    let mut scores: HashMap<i64, f64> = HashMap::new();
    for (weight, rows) in lists {
        let mut rank = 0.0;
        for row in rows {
            rank += 1.0;
            *scores.entry(*row).or_default() += weight / (K + rank);
        }
    }
    let mut ranked: Vec<(i64, f64)> = scores
        .into_iter()
        .filter(|(_, score)| *score > 0.0)
        .collect();
    ranked.sort_by(|(one, high), (other, low)| low.total_cmp(high).then(other.cmp(one)));
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_in_two_lists_beats_the_first_of_one() {
        let fused = fuse(&[(1.0, vec![1, 2, 3]), (1.0, vec![4, 3])]);
        let order: Vec<i64> = fused.iter().map(|(row, _)| *row).collect();
        assert_eq!(order, [3, 4, 1, 2]);
        let third = 1.0 / 63.0 + 1.0 / 62.0;
        assert!((fused[0].1 - third).abs() < 1e-12);
    }

    #[test]
    fn a_list_without_weight_adds_nothing() {
        assert_eq!(fuse(&[(0.0, vec![1, 2]), (1.0, vec![2])]).len(), 1);
        assert_eq!(fuse(&[]), []);
    }
}
