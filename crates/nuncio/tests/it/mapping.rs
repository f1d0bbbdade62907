//! docs/spec-mapping.md is what a client observes.

use crate::harness::{Server, nuncio};
use nuncio_core::Operation;
use serde_json::Value;
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../../docs/spec-mapping.md");

/// The outcomes of an operation, by column.
type Row = BTreeMap<&'static str, String>;

#[test]
fn the_page_is_for_this_version() {
    let line = format!("| nuncio | {} |", env!("CARGO_PKG_VERSION"));
    assert!(PAGE.contains(&line), "the page has the line {line}");
    for name in [
        "SA2A-PROFILE-v26.9.20",
        "urn:sa2a:profile:v26.9.20",
        "SA2A-STRICT-v26.9.20",
    ] {
        assert!(PAGE.contains(name), "the page has {name}");
    }
}

#[test]
fn every_row_is_what_is_observed_under_both_names() {
    let mut observed: BTreeMap<Operation, Row> = BTreeMap::new();
    for (transport, columns) in [
        ("inline", [("0.3", "0.3 Inline"), ("1.0", "1.0 Inline")]),
        ("evented", [("0.3", "0.3 Evented"), ("1.0", "1.0 Evented")]),
    ] {
        let data = tempfile::tempdir().unwrap();
        let server = Server::start(data.path(), &["--transport", transport]);
        for (version, column) in columns {
            for (operation, outcome) in observe(&server, version) {
                observed
                    .entry(operation)
                    .or_default()
                    .insert(column, outcome);
            }
        }
    }
    let page = rows_of_the_page();
    assert_eq!(
        page.len(),
        Operation::ALL.len(),
        "the page has every operation once"
    );
    for operation in Operation::ALL {
        assert_eq!(
            page.get(&operation),
            observed.get(&operation),
            "{operation:?}: the page (left) and what is observed (right)"
        );
    }
}

/// What `nuncio map` observes; it fails here where the two names differ.
fn observe(server: &Server, version: &str) -> Vec<(Operation, String)> {
    let output = nuncio()
        .args(["map", &server.url(), "--protocol", version, "--json"])
        .output()
        .expect("nuncio map runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = rows.as_array().expect("an array of rows");
    rows.iter()
        .map(|row| {
            let slash = row["slashName"].as_str().expect("a slash name");
            let operation = Operation::from_rpc_name(slash).expect("an operation");
            assert_eq!(row["pascalName"], operation.pascal_name());
            assert_eq!(
                row["slash"], row["pascal"],
                "both names behave alike: {row}"
            );
            (
                operation,
                row["slash"].as_str().expect("an outcome").to_owned(),
            )
        })
        .collect()
}

fn rows_of_the_page() -> BTreeMap<Operation, Row> {
    let mut lines = PAGE
        .lines()
        .skip_while(|line| !line.starts_with("| Operation |"));
    let header: Vec<&'static str> = cells(lines.next().expect("the table of operations"));
    lines
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let row = cells(line);
            let operation = Operation::from_rpc_name(row[1].trim_matches('`')).expect("a 0.3 name");
            assert_eq!(row[2].trim_matches('`'), operation.pascal_name());
            let outcomes = header[3..].iter().copied();
            (
                operation,
                outcomes
                    .zip(row[3..].iter().map(|&c| c.to_owned()))
                    .collect(),
            )
        })
        .collect()
}

fn cells(line: &'static str) -> Vec<&'static str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}
