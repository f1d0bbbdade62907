//! Every command of the README's tour works as it stands there.

use crate::harness::nuncio;
use std::{
    net::TcpListener,
    path::Path,
    process::{Command, Output},
};

const README: &str = include_str!("../../../../README.md");

/// The tour's commands, in order.
fn tour() -> Vec<&'static str> {
    README
        .split("<!-- tour -->\n```sh\n")
        .skip(1)
        .map(|rest| rest.split("\n```").next().expect("a block ends"))
        .collect()
}

#[test]
fn the_tour_works() {
    let commands = tour();
    assert!(
        commands.len() >= 5,
        "the tour has {} blocks",
        commands.len()
    );
    let home = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let address = format!("127.0.0.1:{port}");
    // One shell for all of it, as a reader would have; `wait_for` stands for the reader's pause
    // after starting the server.
    let wait = format!(
        "for _ in $(seq 600); do curl -sf http://{address}/.well-known/agent-card.json >/dev/null \
         && break; sleep 0.1; done\n"
    );
    let mut script = String::from("set -e\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n");
    for (index, block) in commands.iter().enumerate() {
        script += &format!(
            "echo '@@ {index}'\n{}\n",
            block.replace("127.0.0.1:8080", &address)
        );
        if block.contains("nuncio serve") {
            script += &wait;
        }
    }
    let output = shell(&script, home.path(), &address);
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "the tour failed:\n{text}\n{errors}"
    );
    for expected in [
        "HELLO",
        "\"state\":\"completed\"",
        "TASK_STATE_COMPLETED",
        "id: 1",
        "nuncio_",
    ] {
        assert!(
            text.contains(expected),
            "the tour prints {expected}:\n{text}\n{errors}"
        );
    }
}

fn shell(script: &str, home: &Path, address: &str) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_nuncio"));
    let folders = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{folders}", binary.parent().unwrap().display());
    let mut command = Command::new("bash");
    command.args(["-c", script]).current_dir(home);
    command
        .env("PATH", path)
        .env("HOME", home)
        .env("NUNCIO_LISTEN", address);
    command.env_remove("XDG_DATA_HOME");
    command.output().expect("bash runs")
}

#[test]
fn the_example_in_the_readme_is_the_example() {
    let example = include_str!("../../../../examples/echo.rs");
    let (_, rest) = README
        .split_once("```rust\n")
        .expect("the README has an example");
    let shown = rest.split("```").next().unwrap();
    let body = |text: &str| {
        let agent = text.split_once("struct Echo;").expect("an agent").1;
        agent
            .split_once("#[tokio::main]")
            .expect("a main")
            .0
            .to_owned()
    };
    assert_eq!(body(shown), body(example));
}

#[test]
fn help_names_every_command() {
    let output = nuncio().arg("--help").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    for command in [
        "serve",
        "init",
        "check-config",
        "keys",
        "card",
        "send",
        "map",
    ] {
        assert!(text.contains(command), "help names {command}");
    }
}
