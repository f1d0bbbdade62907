//! The exec agent, with real commands, seen through a server's socket.

use super::*;
use crate::agents::testing::{PATIENCE, Rig, Stream, text_message};
use nuncio_server::Limits;
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};
use tempfile::TempDir;

const GRACE: Duration = Duration::from_secs(2);

fn sh(script: &str, arguments: &[&str]) -> Vec<String> {
    let mut command: Vec<String> = ["sh", "-c", script, "sh"].map(String::from).into();
    command.extend(arguments.iter().map(|&argument| argument.to_owned()));
    command
}

fn exec(script: &str, arguments: &[&str]) -> Exec {
    Exec::new(
        sh(script, arguments),
        ExecOptions {
            json: false,
            term_grace: GRACE,
        },
    )
}

fn exec_json(script: &str, arguments: &[&str]) -> Exec {
    Exec::new(
        sh(script, arguments),
        ExecOptions {
            json: true,
            term_grace: GRACE,
        },
    )
}

/// The task that a command makes of a message.
async fn task_of(agent: Exec, text: &str) -> Value {
    let rig = Rig::start(agent).await;
    rig.send(text_message("m1", text)).await["task"].take()
}

fn state(task: &Value) -> &str {
    task["status"]["state"]
        .as_str()
        .unwrap()
        .strip_prefix("TASK_STATE_")
        .unwrap()
}

fn reason(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

/// The texts of a task's first artifact.
fn output(task: &Value) -> Vec<&str> {
    let parts = task["artifacts"][0]["parts"].as_array();
    parts
        .into_iter()
        .flatten()
        .map(|part| part["text"].as_str().unwrap())
        .collect()
}

fn chunk(event: &Value) -> Option<String> {
    event["artifactUpdate"]["artifact"]["parts"][0]["text"]
        .as_str()
        .map(str::to_owned)
}

async fn next_chunk(stream: &mut Stream) -> String {
    stream.find(chunk).await
}

async fn task_id(stream: &mut Stream) -> Value {
    stream
        .find(|event| event.pointer("/task/id").cloned())
        .await
}

/// Waits for something that happens in another process.
async fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let waiting = async {
        while !happened() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(
        tokio::time::timeout(PATIENCE, waiting).await.is_ok(),
        "{what} did not happen"
    );
}

/// Whether a process runs; one that has ended and that nobody has waited for does not.
fn runs(pid: &str) -> bool {
    if fs::exists("/proc/self/stat").unwrap() {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        return state.is_some_and(|state| !matches!(state, 'Z' | 'X'));
    }
    let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
    test_kill_process(pid).is_ok()
}

/// A folder, and the path of a file in it that does not exist yet.
fn marker() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("marker");
    (folder, path)
}

// ---------------------------------------------------------------------- plain text

#[tokio::test]
async fn the_message_is_standard_input_and_standard_output_the_artifact() {
    let task = task_of(exec("cat", &[]), "one\n\ntwo").await;
    assert_eq!(state(&task), "COMPLETED");
    assert_eq!(task["artifacts"].as_array().unwrap().len(), 1);
    assert_eq!(task["artifacts"][0]["name"], "output");
    assert_eq!(output(&task), ["one\n", "\n", "two"]);
}

#[tokio::test]
async fn lines_are_seen_while_the_command_runs() {
    let (_folder, marker) = marker();
    // The second line is written only after the first has been seen.
    let script = r#"echo one; until [ -e "$1" ]; do sleep 0.02; done; printf two"#;
    let rig = Rig::start(exec(script, &[marker.to_str().unwrap()])).await;
    let mut stream = rig.stream(text_message("m1", "go")).await;
    assert_eq!(next_chunk(&mut stream).await, "one\n");
    fs::write(&marker, "").unwrap();
    assert_eq!(next_chunk(&mut stream).await, "two");
    let rest = stream.rest().await;
    assert_eq!(state(&rest[0]["statusUpdate"]), "COMPLETED");
    assert_eq!(rest.len(), 1);
}

#[tokio::test]
async fn no_output_is_no_artifact() {
    let task = task_of(exec("exit 0", &[]), "hello").await;
    assert_eq!(state(&task), "COMPLETED");
    assert!(task.get("artifacts").is_none());
}

#[tokio::test]
async fn a_failure_says_the_status_and_the_end_of_standard_error() {
    let task = task_of(exec("echo some; echo 'no disk' >&2; exit 3", &[]), "hello").await;
    assert_eq!(state(&task), "FAILED");
    assert_eq!(reason(&task), "exit status 3: no disk");
    assert_eq!(output(&task), ["some\n"]);

    let task = task_of(exec("kill -9 $$", &[]), "hello").await;
    assert_eq!(
        (state(&task), reason(&task)),
        ("FAILED", "killed by signal 9")
    );

    let script = "i=0; while [ $i -lt 5000 ]; do echo \"line $i\" >&2; i=$((i+1)); done; exit 1";
    let task = task_of(exec(script, &[]), "hello").await;
    assert!(
        reason(&task).starts_with("exit status 1:\n…"),
        "{}",
        reason(&task)
    );
    assert!(reason(&task).ends_with("line 4998\nline 4999"));
    assert!(reason(&task).len() < 9000);
}

#[tokio::test]
async fn standard_error_of_a_success_is_not_shown() {
    let task = task_of(exec("echo warning >&2; echo fine", &[]), "hello").await;
    assert_eq!(state(&task), "COMPLETED");
    assert_eq!(output(&task), ["fine\n"]);
    assert!(!task.to_string().contains("warning"));
}

#[tokio::test]
async fn a_command_that_is_missing_or_may_not_run_is_named_without_its_folder() {
    let (folder, marker) = marker();
    fs::write(&marker, "#!/bin/sh\n").unwrap();
    for (program, complaint) in [
        (
            folder.path().join("absent"),
            "The command absent was not found.",
        ),
        (marker, "The command marker may not be run."),
    ] {
        let options = ExecOptions {
            json: false,
            term_grace: GRACE,
        };
        let agent = Exec::new(vec![program.to_str().unwrap().to_owned()], options);
        let task = task_of(agent, "hello").await;
        assert_eq!((state(&task), reason(&task)), ("FAILED", complaint));
    }
}

#[tokio::test]
async fn nothing_in_a_message_reaches_a_shell() {
    let (_folder, marker) = marker();
    let touch = format!("touch {}", marker.display());
    for text in [
        format!("$({touch})"),
        format!("`{touch}`"),
        format!("; {touch} #"),
        format!("'; {touch}; '"),
        format!("\n{touch}\n"),
        "-rf / --help \u{0} \\ $PATH *".to_owned(),
    ] {
        let task = task_of(exec("cat", &[]), &text).await;
        assert_eq!(output(&task).concat(), text);
        // The arguments are those of the configuration.
        let task = task_of(exec(r#"printf '%s|' "$@""#, &["a b", "$(c)"]), &text).await;
        assert_eq!(output(&task), ["a b|$(c)|"]);
    }
    assert!(!marker.exists());
}

#[tokio::test]
async fn the_environment_names_the_task() {
    let script = r#"echo "$NUNCIO_TASK_ID $NUNCIO_CONTEXT_ID"; env | grep -c ^NUNCIO_"#;
    let task = task_of(exec(script, &[]), "hello").await;
    let (id, context) = (
        task["id"].as_str().unwrap(),
        task["contextId"].as_str().unwrap(),
    );
    assert_eq!(
        output(&task),
        [format!("{id} {context}\n"), "2\n".to_owned()]
    );
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced() {
    let task = task_of(exec(r"printf 'a\377b\nc\303'", &[]), "hello").await;
    assert_eq!(output(&task), ["a\u{fffd}b\n", "c\u{fffd}"]);
    assert_eq!(state(&task), "COMPLETED");
}

#[tokio::test]
async fn a_long_line_comes_in_bounded_chunks() {
    const LENGTH: usize = 3_000_000;
    let script = format!("head -c {LENGTH} /dev/zero | tr '\\0' x");
    let task = task_of(exec(&script, &[]), "hello").await;
    let chunks = output(&task);
    assert!(chunks.iter().all(|chunk| chunk.len() <= LONGEST_CHUNK));
    assert_eq!(
        chunks.iter().map(|chunk| chunk.len()).sum::<usize>(),
        LENGTH
    );
}

#[tokio::test]
async fn a_flood_ends_at_the_limit_and_so_does_the_command() {
    let (_folder, marker) = marker();
    let limits = Limits {
        turn_bytes: 1 << 20,
        ..Limits::default()
    };
    let agent = exec(r#"echo $$ > "$1"; exec yes"#, &[marker.to_str().unwrap()]);
    let rig = Rig::with_limits(agent, limits).await;
    let reply = rig
        .reply("SendMessage", json!({"message": text_message("m1", "go")}))
        .await;
    assert_eq!(reply["error"]["code"], -32006, "{reply}");
    let pid = fs::read_to_string(marker).unwrap();
    eventually("the end of the command", || !runs(pid.trim())).await;
}

#[tokio::test]
async fn a_large_message_is_passed_on_while_output_is_read() {
    let text = format!("{}\n", "x".repeat(199)).repeat(10_000);
    let task = task_of(exec("cat", &[]), &text).await;
    assert_eq!(output(&task).concat(), text);
    // And a command need not read it.
    let task = task_of(exec("echo done", &[]), &text).await;
    assert_eq!((state(&task), output(&task)), ("COMPLETED", vec!["done\n"]));
}

// ---------------------------------------------------------------------- ending a command

#[tokio::test]
async fn a_cancel_lets_the_command_tidy_up() {
    let (_folder, marker) = marker();
    let script = r#"trap 'echo tidy > "$1"; exit 1' TERM; echo ready; while :; do sleep 1; done"#;
    let rig = Rig::start(exec(script, &[marker.to_str().unwrap()])).await;
    let mut stream = rig.stream(text_message("m1", "go")).await;
    let id = task_id(&mut stream).await;
    next_chunk(&mut stream).await;
    let task = rig.call("CancelTask", json!({"id": id})).await;
    assert_eq!(state(&task), "CANCELED");
    assert_eq!(fs::read_to_string(&marker).unwrap(), "tidy\n");
}

#[tokio::test]
async fn a_command_that_ignores_a_cancel_is_killed_after_the_grace() {
    let script = "trap '' TERM; echo $$; while :; do sleep 1; done";
    let options = ExecOptions {
        json: false,
        term_grace: Duration::from_millis(50),
    };
    let rig = Rig::start(Exec::new(sh(script, &[]), options)).await;
    let mut stream = rig.stream(text_message("m1", "go")).await;
    let id = task_id(&mut stream).await;
    let pid = next_chunk(&mut stream).await;
    assert!(runs(pid.trim()));
    let task = rig.call("CancelTask", json!({"id": id})).await;
    assert_eq!(state(&task), "CANCELED");
    assert!(
        !runs(pid.trim()),
        "it is gone before the cancel is answered"
    );
}

#[tokio::test]
async fn a_turn_that_is_dropped_takes_its_whole_group_along() {
    // Ignoring SIGTERM for a minute, so that the server's own grace ends first.
    let script = "trap '' TERM; sleep 1000 & echo $!; echo $$; while :; do sleep 1; done";
    let options = ExecOptions {
        json: false,
        term_grace: Duration::from_secs(60),
    };
    let limits = Limits {
        cancel_grace: Duration::from_millis(50),
        ..Limits::default()
    };
    let rig = Rig::with_limits(Exec::new(sh(script, &[]), options), limits).await;
    let mut stream = rig.stream(text_message("m1", "go")).await;
    let id = task_id(&mut stream).await;
    let grandchild = next_chunk(&mut stream).await;
    let child = next_chunk(&mut stream).await;
    let task = rig.call("CancelTask", json!({"id": id})).await;
    assert_eq!(state(&task), "CANCELED");
    eventually("the end of the command", || !runs(child.trim())).await;
    eventually("the end of what it started", || !runs(grandchild.trim())).await;
}

#[tokio::test]
async fn what_a_command_leaves_behind_neither_holds_the_turn_nor_lives_on() {
    // It holds standard output open.
    let task = task_of(exec("sleep 1000 & echo $!", &[]), "go").await;
    assert_eq!(state(&task), "COMPLETED");
    let pid = output(&task)[0].trim().to_owned();
    eventually("the end of what was left", || !runs(&pid)).await;

    // It floods standard output.
    let task = task_of(exec("yes & echo $! >&2; exit 1", &[]), "go").await;
    assert_eq!(state(&task), "FAILED");
    let pid = reason(&task)
        .strip_prefix("exit status 1: ")
        .unwrap()
        .to_owned();
    eventually("the end of the flood", || !runs(&pid)).await;

    // It floods standard error.
    let task = task_of(exec("yes >&2 & echo $!", &[]), "go").await;
    assert_eq!(state(&task), "COMPLETED");
    let pid = output(&task)[0].trim().to_owned();
    eventually("the end of the flood", || !runs(&pid)).await;
}

#[tokio::test]
async fn the_card_names_the_program_and_not_its_folder() {
    let agent = Exec::new(
        vec!["/opt/secret/tool".into(), "--key=1".into()],
        ExecOptions {
            json: false,
            term_grace: GRACE,
        },
    );
    let card = agent.card();
    assert_eq!(card.name, "tool");
    let card = format!("{card:?}");
    assert!(!card.contains("secret") && !card.contains("key"), "{card}");
}

// ---------------------------------------------------------------------- JSON

#[tokio::test]
async fn a_command_gets_the_whole_turn() {
    let script = r#"read -r line; printf '{"data":%s}\n' "$line""#;
    let rig = Rig::start(exec_json(script, &[])).await;
    let params = json!({
        "message": {
            "messageId": "m1", "role": "ROLE_USER",
            "parts": [{"text": "it's\n\"quoted\" $(x)"}, {"data": {"n": 1.5}}],
        },
        "metadata": {"colour": "blue", "nuncio.owner": "mallory"},
        "configuration": {"acceptedOutputModes": ["text/plain", "application/json"]},
    });
    let task = rig.call("SendMessage", params).await["task"].take();
    assert_eq!(state(&task), "COMPLETED", "{task}");
    let turn = &task["artifacts"][0]["parts"][0]["data"];
    assert_eq!(turn["message"]["parts"][0]["text"], "it's\n\"quoted\" $(x)");
    assert_eq!(turn["message"]["parts"][1]["data"], json!({"n": 1.5}));
    assert_eq!(turn["message"]["role"], "ROLE_USER");
    assert_eq!(
        (&turn["taskId"], &turn["contextId"]),
        (&task["id"], &task["contextId"])
    );
    assert_eq!(turn["task"]["status"]["state"], "TASK_STATE_SUBMITTED");
    assert_eq!(turn["task"]["history"][0]["messageId"], "m1");
    assert_eq!(turn["metadata"], json!({"colour": "blue"}));
    assert_eq!(
        turn["acceptedOutputModes"],
        json!(["text/plain", "application/json"])
    );
    assert_eq!(
        turn["principal"],
        json!({"issuer": "anonymous", "subject": ""})
    );
    assert_eq!(turn["resumed"], false);
}

#[tokio::test]
async fn a_command_says_all_that_an_agent_can() {
    let script = r#"
        read -r line
        echo '{"progress":"looking"}'
        echo '{"text":"one "}'
        echo
        echo '{"text":"two"}'
        echo '{"artifactUpdate":{"artifact":{"artifactId":"own","name":"table","parts":[{"data":[1]}]}}}'
        echo '{"artifactUpdate":{"artifact":{"artifactId":"own","parts":[{"data":[2]}]},"append":true,"lastChunk":true}}'
        echo '{"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED","message":{"parts":[{"text":"bye"}]}},"metadata":{"cost":3}}}'
        echo 'not read any more'
        exit 1
    "#;
    let rig = Rig::start(exec_json(script, &[])).await;
    let mut stream = rig.stream(text_message("m1", "go")).await;
    let id = task_id(&mut stream).await;
    let events = stream.rest().await;
    assert_eq!(state(&events[0]["statusUpdate"]), "WORKING");
    assert_eq!(reason(&events[0]["statusUpdate"]), "looking");
    let task = rig.call("GetTask", json!({"id": id})).await;
    assert_eq!((state(&task), reason(&task)), ("COMPLETED", "bye"));
    assert_eq!(task["metadata"], json!({"cost": 3}));
    assert_eq!(output(&task), ["one ", "two"]);
    assert_eq!(task["artifacts"][1]["name"], "table");
    assert_eq!(
        task["artifacts"][1]["parts"],
        json!([{"data": [1]}, {"data": [2]}])
    );
}

#[tokio::test]
async fn a_message_can_be_the_whole_answer() {
    let script =
        r#"echo '{"message":{"messageId":"a1","parts":[{"text":"hi"}],"metadata":{"k":1}}}'"#;
    let rig = Rig::start(exec_json(script, &[])).await;
    let answer = rig.send(text_message("m1", "hello")).await;
    assert_eq!(answer["message"]["parts"][0]["text"], "hi");
    assert_eq!(answer["message"]["messageId"], "a1");
    assert_eq!(answer["message"]["metadata"], json!({"k": 1}));
    assert!(answer["message"].get("taskId").is_none());
}

#[tokio::test]
async fn a_message_after_a_report_is_a_fault() {
    let script = r#"echo '{"text":"x"}'; echo '{"message":{"parts":[{"text":"hi"}]}}'"#;
    let rig = Rig::start(exec_json(script, &[])).await;
    let reply = rig
        .reply("SendMessage", json!({"message": text_message("m1", "go")}))
        .await;
    assert_eq!(reply["error"]["code"], -32006, "{reply}");
}

#[tokio::test]
async fn a_silent_command_is_at_work_after_a_while_and_can_be_canceled() {
    let rig = Rig::start(exec_json("while :; do sleep 1; done", &[])).await;
    let mut stream = rig.stream(text_message("m1", "go")).await;
    let id = task_id(&mut stream).await;
    let task = rig.call("CancelTask", json!({"id": id})).await;
    assert_eq!(state(&task), "CANCELED");
}

#[tokio::test]
async fn a_message_that_comes_late_completes_the_task() {
    let (_folder, marker) = marker();
    let script =
        r#"until [ -e "$1" ]; do sleep 0.02; done; echo '{"message":{"parts":[{"text":"hi"}]}}'"#;
    let rig = Rig::start(exec_json(script, &[marker.to_str().unwrap()])).await;
    let mut stream = rig.stream(text_message("m1", "go")).await;
    stream
        .find(|event| event.get("statusUpdate").cloned())
        .await;
    fs::write(&marker, "").unwrap();
    let end = stream.rest().await.pop().unwrap();
    assert_eq!(state(&end["statusUpdate"]), "COMPLETED");
    assert_eq!(reason(&end["statusUpdate"]), "hi");
}

#[tokio::test]
async fn a_command_can_ask_and_is_run_again_for_the_answer() {
    let script = r#"
        read -r line
        case "$line" in
            *blue*) echo '{"text":"painted blue"}';;
            *) echo '{"ask":"Which colour?"}';;
        esac
    "#;
    let rig = Rig::start(exec_json(script, &[])).await;
    let task = rig.send(text_message("m1", "paint")).await["task"].take();
    assert_eq!(
        (state(&task), reason(&task)),
        ("INPUT_REQUIRED", "Which colour?")
    );
    let mut answer = text_message("m2", "blue");
    answer["taskId"] = task["id"].clone();
    let done = rig.send(answer).await["task"].take();
    assert_eq!(done["id"], task["id"]);
    assert_eq!(
        (state(&done), output(&done)),
        ("COMPLETED", vec!["painted blue"])
    );
}

#[tokio::test]
async fn an_answer_waits_for_the_next_run_while_the_asking_one_is_still_there() {
    let (folder, marker) = marker();
    let asked = folder.path().join("asked");
    // The run that asks sees the end of its input, and ends only when it is told to.
    let script = r#"
        read -r line
        if [ -e "$2" ]; then printf '{"data":%s}\n' "$line"; exit; fi
        echo >"$2"
        echo '{"ask":"Which colour?"}'
        while read -r more; do echo '{"text":"taken"}'; done
        echo '{"text":"closed"}'
        until [ -e "$1" ]; do sleep 0.02; done
    "#;
    let paths = [marker.to_str().unwrap(), asked.to_str().unwrap()];
    let rig = Rig::start(exec_json(script, &paths)).await;
    let task = rig.send(text_message("m1", "paint")).await["task"].take();
    assert_eq!(state(&task), "INPUT_REQUIRED");
    let mut answer = text_message("m2", "blue");
    answer["taskId"] = task["id"].clone();
    let at_once = json!({"message": answer, "configuration": {"returnImmediately": true}});
    rig.call("SendMessage", at_once).await;
    fs::write(&marker, "").unwrap();
    let done = once(&rig, &task["id"], "COMPLETED").await;
    assert_eq!(output(&done), ["closed"]);
    let second = &done["artifacts"][1]["parts"][0]["data"];
    assert_eq!(second["message"]["parts"][0]["text"], "blue");
    assert_eq!(
        second["task"]["history"][1]["parts"][0]["text"],
        "Which colour?"
    );
}

#[tokio::test]
async fn a_message_that_comes_meanwhile_is_a_further_line() {
    let script = r#"
        read -r first
        echo '{"progress":"ready"}'
        read -r second
        printf '{"data":%s}\n' "$second"
    "#;
    let rig = Rig::start(exec_json(script, &[])).await;
    let mut stream = rig.stream(text_message("m1", "begin")).await;
    let id = task_id(&mut stream).await;
    stream
        .find(|event| event.get("statusUpdate").cloned())
        .await;
    let mut more = text_message("m2", "and this");
    more["taskId"] = id.clone();
    let task = rig.send(more).await["task"].take();
    assert_eq!(state(&task), "COMPLETED");
    let line = &task["artifacts"][0]["parts"][0]["data"];
    assert_eq!(line["message"]["parts"][0]["text"], "and this");
    assert_eq!(line["taskId"], id);
    assert!(line.get("task").is_none() && line.get("resumed").is_none());
}

#[tokio::test]
async fn without_a_last_word_the_exit_status_decides() {
    let task = task_of(exec_json(r#"echo '{"progress":"x"}'; exit 0"#, &[]), "go").await;
    assert_eq!(state(&task), "COMPLETED");
    let task = task_of(
        exec_json(r#"echo '{"text":"x"}'; echo bad >&2; exit 4"#, &[]),
        "go",
    )
    .await;
    assert_eq!(
        (state(&task), reason(&task)),
        ("FAILED", "exit status 4: bad")
    );
    let task = task_of(exec_json("exit 0", &[]), "go").await;
    assert_eq!(state(&task), "COMPLETED");
    assert!(task.get("artifacts").is_none());
}

/// The task once it is in this state.
async fn once(rig: &Rig, id: &Value, wanted: &str) -> Value {
    let looking = async {
        loop {
            let task = rig.call("GetTask", json!({"id": id})).await;
            if state(&task) == wanted {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap()
}

#[tokio::test]
async fn of_several_statuses_the_last_decides() {
    let script = r#"echo '{"ask":"?"}'; echo '{"progress":"never mind"}'"#;
    let rig = Rig::start(exec_json(script, &[])).await;
    let task = rig.send(text_message("m1", "go")).await["task"].take();
    once(&rig, &task["id"], "COMPLETED").await;

    // A question stands, however the command that asked it ends.
    let rig = Rig::start(exec_json(r#"echo '{"ask":"?"}'; exit 1"#, &[])).await;
    let task = rig.send(text_message("m1", "go")).await["task"].take();
    assert_eq!(state(&task), "INPUT_REQUIRED");
    let mut answer = text_message("m2", "this");
    answer["taskId"] = task["id"].clone();
    let task = rig.send(answer).await["task"].take();
    assert_eq!((state(&task), reason(&task)), ("INPUT_REQUIRED", "?"));
    assert_eq!(task["history"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_line_that_is_wrong_fails_the_task_and_names_line_and_field() {
    for (lines, complaint) in [
        (
            r#"{"text":"x"}|oops"#,
            "line 2 of the command's output: is no JSON, at column 1",
        ),
        (
            r#"{"text":"x"}||{"statusUpdate":{"status":{"state":"done"}}}"#,
            "line 3 of the command's output: statusUpdate.status.state: must be a task state",
        ),
        (
            r#"{"statusUpdate":{"taskId":"other","status":{"state":"working"}}}"#,
            "line 1 of the command's output: statusUpdate.taskId: must be this task's id",
        ),
        (
            "[]",
            "line 1 of the command's output: must be a JSON object",
        ),
        (
            r#"{"colour":"blue"}"#,
            "line 1 of the command's output: must have one of",
        ),
    ] {
        // It would go on for ever, and is ended.
        let script = r#"echo "$1" | tr '|' '\n'; while :; do sleep 1; done"#;
        let task = task_of(exec_json(script, &[lines]), "go").await;
        assert_eq!(state(&task), "FAILED", "{lines}");
        assert!(
            reason(&task).starts_with(complaint),
            "{lines}: {}",
            reason(&task)
        );
    }
    let script = r"echo 'ValueError: 7' >&2; echo Traceback; sleep 1000";
    let task = task_of(exec_json(script, &[]), "go").await;
    assert!(
        reason(&task).ends_with("at column 1: ValueError: 7"),
        "{}",
        reason(&task)
    );
}

#[tokio::test]
async fn an_endless_line_of_json_is_given_up() {
    let script = r#"printf '{"text":"'; tr '\0' x < /dev/zero"#;
    let task = task_of(exec_json(script, &[]), "go").await;
    assert_eq!(state(&task), "FAILED");
    assert!(reason(&task).contains("line 1 of the command's output: is longer than 8388608 bytes"));
}

#[tokio::test]
async fn appending_to_nothing_is_the_agents_fault() {
    let script = r#"echo '{"artifactUpdate":{"artifact":{"artifactId":"a","parts":[{"text":"x"}]},"append":true}}'"#;
    let rig = Rig::start(exec_json(script, &[])).await;
    let reply = rig
        .reply("SendMessage", json!({"message": text_message("m1", "go")}))
        .await;
    assert_eq!(reply["error"]["code"], -32006, "{reply}");
}
