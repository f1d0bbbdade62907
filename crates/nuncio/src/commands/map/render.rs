//! The table of outcomes, for people, for a page and for programs.

use super::observe::{Outcome, Row};
use nuncio_core::{Operation, ProtocolVersion};
use serde_json::json;

type Columns = [(ProtocolVersion, Vec<Row>)];

/// What an operation is called in the table.
fn label(operation: Operation) -> &'static str {
    match operation {
        Operation::SendMessage => "send",
        Operation::SendStreamingMessage => "stream",
        Operation::GetTask => "get",
        Operation::CancelTask => "cancel",
        Operation::ListTasks => "list",
        Operation::SubscribeToTask => "resubscribe",
        Operation::GetExtendedAgentCard => "extended card",
        Operation::CreatePushConfig => "push set",
        Operation::GetPushConfig => "push get",
        Operation::ListPushConfigs => "push list",
        Operation::DeletePushConfig => "push delete",
    }
}

/// One outcome where both names behave alike, as they must; else both.
fn outcome(slash: Outcome, pascal: Outcome) -> String {
    if slash == pascal {
        slash.to_string()
    } else {
        format!("{slash} / {pascal} (!)")
    }
}

fn cells(columns: &Columns, quote: &str) -> Vec<Vec<String>> {
    let mut header: Vec<String> = ["Operation", "0.3 name", "1.0 name"]
        .into_iter()
        .map(str::to_owned)
        .collect();
    header.extend(columns.iter().map(|(version, _)| version.to_string()));
    let mut table = vec![header];
    for (index, operation) in Operation::ALL.into_iter().enumerate() {
        let name = |name: &str| format!("{quote}{name}{quote}");
        let mut line = vec![
            label(operation).to_owned(),
            name(operation.slash_name()),
            name(operation.pascal_name()),
        ];
        line.extend(
            columns
                .iter()
                .filter_map(|(_, rows)| rows.get(index).map(|row| outcome(row.slash, row.pascal))),
        );
        table.push(line);
    }
    table
}

/// A table of GitHub's Markdown.
pub(super) fn markdown(columns: &Columns) -> String {
    let table = cells(columns, "`");
    let mut text = String::new();
    for (index, line) in table.iter().enumerate() {
        text += &format!("| {} |\n", line.join(" | "));
        if index == 0 {
            text += &format!("|{}\n", "---|".repeat(line.len()));
        }
    }
    text
}

/// Columns of text.
pub(super) fn plain(columns: &Columns) -> String {
    let table = cells(columns, "");
    let widths: Vec<usize> = (0..table.first().map_or(0, Vec::len))
        .map(|column| {
            table
                .iter()
                .filter_map(|line| line.get(column))
                .map(String::len)
                .max()
        })
        .map(Option::unwrap_or_default)
        .collect();
    let mut text = String::new();
    for line in &table {
        let padded = line
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        text += padded.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// An array, an object for each operation and version.
pub(super) fn json(columns: &Columns) -> String {
    let rows = columns.iter().flat_map(|(version, rows)| {
        rows.iter().map(move |row| {
            json!({
                "operation": label(row.operation),
                "slashName": row.operation.slash_name(),
                "pascalName": row.operation.pascal_name(),
                "version": version.as_str(),
                "slash": row.slash.to_string(),
                "pascal": row.pascal.to_string(),
            })
        })
    });
    format!("{:#}\n", serde_json::Value::from_iter(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_are_flagged() {
        let row = |operation| Row {
            operation,
            slash: Outcome::Result,
            pascal: Outcome::Error(-32601),
        };
        let columns = [(ProtocolVersion::V0_3, Operation::ALL.map(row).to_vec())];
        let text = markdown(&columns);
        assert!(text.starts_with("| Operation | 0.3 name | 1.0 name | 0.3 |\n|---|---|---|---|\n"));
        assert!(
            text.contains("| `tasks/get` | `GetTask` | result / error -32601 (!) |"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 2 + Operation::ALL.len());
        assert!(plain(&columns).lines().all(|line| !line.ends_with(' ')));
        let parsed: serde_json::Value = serde_json::from_str(&json(&columns)).unwrap();
        assert_eq!(parsed.as_array().unwrap().len(), Operation::ALL.len());
    }
}
