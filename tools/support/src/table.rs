//! Plain text tables.

/// Renders rows under a header, columns padded to their widest cell.
pub fn render<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    let head = header.map(str::to_owned);
    let widths: Vec<usize> = (0..N).map(|column| width(&head, rows, column)).collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut out = line(&head, &widths);
    out.push_str(&line(&rule, &widths));
    for row in rows {
        out.push_str(&line(row, &widths));
    }
    out
}

fn width<const N: usize>(head: &[String; N], rows: &[[String; N]], column: usize) -> usize {
    rows.iter()
        .chain(std::iter::once(head))
        .filter_map(|row| row.get(column))
        .map(|cell| cell.chars().count())
        .max()
        .unwrap_or(0)
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded: Vec<String> = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:<width$}"))
        .collect();
    format!("{}\n", padded.join("  ").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [
            ["a".to_owned(), "1".to_owned()],
            ["long".to_owned(), "é".to_owned()],
        ];
        assert_eq!(
            render(["id", "n"], &rows),
            "id    n\n----  -\na     1\nlong  é\n"
        );
    }
}
