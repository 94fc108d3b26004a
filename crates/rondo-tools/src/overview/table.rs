//! Computed facts about a table: small models compare and add numbers badly.

/// How names of tables end, and what separates their columns.
const KINDS: [(&str, char); 2] = [(".csv", ','), (".tsv", '\t')];
/// Rows of a table that is worth a summary.
const ROWS_MIN: usize = 2;
/// Columns of numbers that are summed up.
const COLUMNS_MAX: usize = 3;
/// Decimal places of what is computed.
const PLACES: usize = 4;

/// Returns facts of a table, one a line; none if a file is not a table, or one with quotes.
pub(super) fn facts(path: &str, text: &str) -> Vec<String> {
    let kind = KINDS.iter().find(|(ending, _)| path.ends_with(ending));
    let Some((_, separator)) = kind.filter(|_| !text.contains('"')) else {
        return Vec::new();
    };
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let names: Vec<&str> = lines.next().unwrap_or_default().split(*separator).collect();
    let rows: Vec<(&str, Vec<&str>)> = lines
        .map(|line| (line.trim_end(), line.split(*separator).collect()))
        .collect();
    if rows.len() < ROWS_MIN || rows.iter().any(|(_, row)| row.len() != names.len()) {
        return Vec::new();
    }
    let columns = names.iter().enumerate();
    let columns = columns.filter_map(|(index, name)| column(name.trim(), index, &rows));
    let mut facts = vec![format!("{} rows", rows.len())];
    facts.extend(columns.take(COLUMNS_MAX));
    facts
}

/// Sums up a column; `None` if it is not all numbers.
fn column(name: &str, index: usize, rows: &[(&str, Vec<&str>)]) -> Option<String> {
    let number = |row: &Vec<&str>| row.get(index)?.trim().parse::<f64>().ok();
    let numbers = rows
        .iter()
        .map(|(_, row)| number(row).filter(|it| it.is_finite()));
    let numbers: Vec<f64> = numbers.collect::<Option<_>>()?;
    let both = || numbers.iter().zip(rows);
    let (_, (least, _)) = both()
        .rev()
        .min_by(|(one, _), (other, _)| one.total_cmp(other))?;
    let (_, (greatest, _)) = both()
        .rev()
        .max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    let sum: f64 = numbers.iter().sum();
    #[expect(
        clippy::cast_precision_loss,
        reason = "rows are far fewer than a float counts exactly"
    )]
    let mean = sum / numbers.len() as f64;
    let (sum, mean) = (short(sum), short(mean));
    Some(format!(
        "{name}: least {least}; greatest {greatest}; sum {sum}; mean {mean}"
    ))
}

fn short(number: f64) -> String {
    let text = format!("{number:.PLACES$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_numbers_are_summed_up() {
        let text = "town,people,metres\nOslo,700,12.5\nBergen,290,3\n\nRoros,290,628\n";
        assert_eq!(
            facts("a/towns.csv", text),
            [
                "3 rows",
                "people: least Roros,290,628; greatest Oslo,700,12.5; sum 1280; mean 426.6667",
                "metres: least Bergen,290,3; greatest Roros,290,628; sum 643.5; mean 214.5",
            ]
        );
        assert_eq!(
            facts("t.tsv", "a\tb\nx\t1\ny\t2\n")[1],
            "b: least x\t1; greatest y\t2; sum 3; mean 1.5"
        );
    }

    #[test]
    fn what_is_no_plain_table_has_no_facts() {
        for (path, text) in [
            ("a.txt", "a,b\n1,2\n3,4\n"),
            ("a.csv", "a,b\n1,2\n"),
            ("a.csv", "a,b\n1,2\n3\n"),
            ("a.csv", "a,b\n\"1,5\",2\n3,4\n"),
            ("a.csv", ""),
        ] {
            assert_eq!(facts(path, text), Vec::<String>::new(), "{text}");
        }
        let none = facts("a.csv", "a,b\nx,NaN\ny,inf\n");
        assert_eq!(none, ["2 rows"]);
    }
}
