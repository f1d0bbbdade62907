//! Many followers of one task, some of them slow, some of them broken off.
//!
//! The clients are plain threads that read lines: what is looked at is the server, and nothing
//! else should cost time here. They speak HTTP/1.0, whose bodies come without chunks.

use crate::harness::{
    Connection, Gate, House, PATIENCE, Peer, Setting, State, World, asking, eventually, script,
    send,
};
use nuncio_server::core::{Operation, Part, Principal, TaskId, TaskState};
use serde_json::json;
use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    process::Command,
    sync::{Arc, mpsc},
    time::Duration,
};

const SUBSCRIBERS: usize = 300;
const EVENTS: u64 = 5_000;
/// Entry 1 is the task and entry 2 says that it works.
const BEFORE: u64 = 2;
/// The last chunk comes with entry `BEFORE + EVENTS`, the end with the next.
const LAST: u64 = BEFORE + EVENTS + 1;

/// What a subscriber does in the middle of the burst.
enum Habit {
    Reads,
    /// Stops reading until it is told to go on.
    Pauses(mpsc::Receiver<()>),
    /// Breaks off, and comes back with the last event it has.
    BreaksOff,
}

struct Subscriber {
    address: SocketAddr,
    request: String,
    lines: BufReader<TcpStream>,
    last: u64,
}

impl Subscriber {
    fn open(address: SocketAddr, request: &str, last: u64) -> Self {
        let stream = TcpStream::connect(address).expect("the server takes connections");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout can be set");
        let last_event = match last {
            0 => String::new(),
            last => format!("Last-Event-ID: {last}\r\n"),
        };
        write!(
            &stream,
            "POST / HTTP/1.0\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n\
             {last_event}Content-Length: {}\r\n\r\n{request}",
            request.len(),
        )
        .expect("the server reads");
        let mut lines = BufReader::with_capacity(16 << 10, stream);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert_ne!(lines.read_line(&mut line).expect("the server answers"), 0);
        }
        Self {
            address,
            request: request.to_owned(),
            lines,
            last,
        }
    }

    /// The next frame's id and data; `None` at the end.
    fn frame(&mut self) -> Option<(u64, String)> {
        let mut id = None;
        let mut line = String::new();
        loop {
            line.clear();
            if self.lines.read_line(&mut line).expect("the stream goes on") == 0 {
                return None;
            }
            if let Some(text) = line.strip_prefix("id: ") {
                id = Some(text.trim_end().parse().expect("an id is a number"));
            } else if line.starts_with("data: ") {
                return Some((id.expect("every event has an id"), line));
            }
        }
    }

    /// Reads the snapshot, which is as of entry `as_of`.
    fn snapshot(&mut self, as_of: u64) {
        let (id, data) = self.frame().expect("the snapshot comes");
        assert_eq!(id, as_of);
        assert!(data.contains(r#""result":{"task":"#), "{data}");
        self.last = id;
    }

    /// Reads one event, which must be the next.
    fn step(&mut self) {
        let (id, data) = self.frame().expect("there is more to come");
        assert_eq!(id, self.last + 1, "no gap, no duplicate, in order");
        let says = if id == LAST {
            "TASK_STATE_COMPLETED".to_owned()
        } else {
            format!(r#""chunk {}""#, id - BEFORE)
        };
        assert!(data.contains(&says), "event {id} says {data}");
        self.last = id;
    }

    fn break_off(&mut self) {
        let last = self.last;
        *self = Self::open(self.address, &self.request, last);
        self.snapshot(last);
    }

    fn run(mut self, habit: &Habit, ready: &Gate) {
        self.snapshot(BEFORE);
        ready.open();
        while self.last < LAST {
            self.step();
            match habit {
                Habit::Pauses(go_on) if self.last == EVENTS / 5 => {
                    go_on.recv_timeout(PATIENCE).expect("it is told to go on");
                    std::thread::sleep(Duration::from_secs(1));
                }
                Habit::BreaksOff if self.last.is_multiple_of(EVENTS / 4) => self.break_off(),
                _ => {}
            }
        }
        assert_eq!(self.frame(), None, "nothing comes after the end");
    }
}

fn subscribe_body(peer: &Peer, id: &TaskId) -> String {
    let body = peer.body(Operation::SubscribeToTask, &json!({"id": id.as_str()}));
    String::from_utf8(body).expect("JSON is text")
}

/// Works, waits to be let go, and then says all it has to say as fast as it can.
fn burst(go: &Gate, events: u64, padding: usize) -> crate::harness::Script {
    let go = go.clone();
    script(move |turn| {
        let go = go.clone();
        async move {
            turn.working().await?;
            go.pass().await;
            let mut chunks = turn.chunks("burst");
            for n in 1..=events {
                let padding = "x".repeat(padding);
                chunks
                    .send(Part::text(format!("{padding}chunk {n}")))
                    .await?;
            }
            drop(chunks);
            turn.complete()
        }
    })
}

async fn fan_out(world: World) {
    let go = Gate::new();
    let house = House::with(world, burst(&go, EVENTS, 0), |setting| {
        // Who is slow must read from the store.
        setting.limits(|limits| limits.recent_updates = 256)
    });
    let peer = house.peer(world.dialect);
    let sender = {
        let peer = peer.clone();
        tokio::spawn(async move { peer.say("go").await })
    };
    let id = eventually("the task works", async || {
        let page = peer.list(Default::default()).await.expect("a page");
        let task = page.tasks.first()?;
        (task.status.state == TaskState::Working).then(|| task.id.clone())
    })
    .await;

    let ready = Gate::new();
    let request = subscribe_body(&peer, &id);
    let mut go_on = Vec::new();
    let mut threads = Vec::new();
    for n in 0..SUBSCRIBERS {
        let habit = match n % 30 {
            0 => {
                let (tell, told) = mpsc::channel();
                go_on.push(tell);
                Habit::Pauses(told)
            }
            1 => Habit::BreaksOff,
            _ => Habit::Reads,
        };
        let (address, request, ready) = (house.address, request.clone(), ready.clone());
        let thread = std::thread::Builder::new()
            .stack_size(512 << 10)
            .spawn(move || {
                Subscriber::open(address, &request, 0).run(&habit, &ready);
            });
        threads.push(thread.expect("a thread can be made"));
    }
    for _ in 0..SUBSCRIBERS {
        ready.reached().await;
    }
    go.open();
    // The task is not held up: its sender has the answer while ten subscribers don't read.
    let task = crate::harness::soon("the send's answer", sender)
        .await
        .expect("it was sent");
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(task.artifacts[0].parts.len() as u64, EVENTS);
    assert_eq!(go_on.len(), 10);
    for tell in go_on {
        tell.send(()).expect("the subscriber pauses");
    }
    tokio::task::spawn_blocking(move || {
        for thread in threads {
            thread.join().expect("a subscriber has all events");
        }
    })
    .await
    .expect("all are done");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_subscribers_get_every_event_of_a_burst_in_memory() {
    fan_out(World::ALL[1]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_subscribers_get_every_event_of_a_burst_in_sqlite() {
    fan_out(World::ALL[5]).await;
}

/// Bytes of this process that are in memory.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: u64 = statm
        .split(' ')
        .nth(1)
        .and_then(|n| n.parse().ok())
        .expect("a number");
    pages * 4096
}

/// A hundred subscribers that never read, and 16 MB of events for each of them: 1.6 GB, if they
/// were kept. Asserted is that the process grows by less than 200 MB, most of which is the task
/// itself, as it is and on its way to the store. In a process of its own, where nothing else
/// grows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg(target_os = "linux")]
async fn subscribers_that_do_not_read_cost_no_memory() {
    const CHILD: &str = "NUNCIO_TEST_MEASURES_MEMORY";
    const BOUND: u64 = 200 << 20;
    if std::env::var_os(CHILD).is_none() {
        let name = "fanout::subscribers_that_do_not_read_cost_no_memory";
        let child = Command::new(std::env::current_exe().expect("this is a program"))
            .args(["--exact", name])
            .env(CHILD, "1")
            .output()
            .expect("the test runs by itself");
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(
            child.status.success() && said.contains("1 passed"),
            "{said}"
        );
        return;
    }
    let world = World::ALL[5];
    let (go, state) = (Gate::new(), State::new());
    let store = world.store.open(state.folder());
    let setting = Setting::new(world.store).store(Arc::clone(&store));
    let house = setting.serve(burst(&go, 1_024, 16 << 10), &state);
    let peer = house.peer(world.dialect);
    let task = peer.send(asking::at_once(send("go"))).await.unwrap();
    let mut deaf = Vec::new();
    for _ in 0..100 {
        let connection = Connection::open_narrow(house.address).await;
        deaf.push(
            peer.stream_on(connection, &asking::to_follow(&task.id))
                .await
                .unwrap(),
        );
    }
    let before = resident();
    go.open();
    let owner = Principal::anonymous().owner();
    eventually("the task completes", async || {
        let stored = store.load(&owner, &task.id).await.unwrap();
        stored.status.state.is_terminal().then_some(())
    })
    .await;
    let grown = resident().saturating_sub(before);
    assert!(grown < BOUND, "grew by {} MB", grown >> 20);
    // They are still there, and get on with it when they listen.
    let mut stream = deaf.pop().expect("there are a hundred");
    stream.frame().await;
    stream.frame().await;
}
