//! A server on a real socket, in a runtime of its own, so that it can die like a process does.

use super::{Dialect, Peer, Script, World, stores::StoreKind};
use nuncio_server::{Limits, Server, ServerBuilder, Transport, store::Store};
use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};
use tokio::{net::TcpListener, runtime::Runtime, sync::oneshot};

/// What outlives a server: its store's files.
#[derive(Debug)]
pub(crate) struct State {
    folder: tempfile::TempDir,
}

impl State {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder can be made"),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// How a server is to be put together.
pub(crate) struct Setting {
    kind: StoreKind,
    store: Option<Arc<dyn Store>>,
    build: Vec<Box<dyn FnOnce(ServerBuilder) -> ServerBuilder>>,
    limits: Limits,
}

impl Setting {
    pub(crate) fn new(kind: StoreKind) -> Self {
        Self {
            kind,
            store: None,
            build: Vec::new(),
            limits: test_limits(),
        }
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub(crate) fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    pub(crate) fn build(
        mut self,
        build: impl FnOnce(ServerBuilder) -> ServerBuilder + 'static,
    ) -> Self {
        self.build.push(Box::new(build));
        self
    }

    pub(crate) fn inline(self) -> Self {
        self.build(|builder| builder.transport(Transport::Inline))
    }

    /// Begins to serve, with what is left of earlier servers in `state`.
    pub(crate) fn serve(self, agent: Script, state: &State) -> House {
        let store = self.store.unwrap_or_else(|| self.kind.open(state.folder()));
        let mut builder = Server::builder(agent)
            .name("tested")
            .store(store)
            .limits(self.limits);
        for build in self.build {
            builder = build(builder);
        }
        House::serve(builder)
    }
}

/// Limits under which a test that hangs fails before its author has left.
fn test_limits() -> Limits {
    Limits {
        lease: Duration::from_millis(600),
        cancel_grace: Duration::from_secs(20),
        shutdown_grace: Duration::from_secs(5),
        send_wait: Duration::from_secs(60),
        first_event: Duration::from_secs(60),
        ..Limits::default()
    }
}

/// A running server.
#[derive(Debug)]
pub(crate) struct House {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    ended: std::sync::mpsc::Receiver<()>,
    runtime: Option<Runtime>,
    _state: Option<State>,
}

impl House {
    /// Serves an agent in a world, with a store of its own.
    pub(crate) fn of(world: World, agent: Script) -> Self {
        Self::with(world, agent, |setting| setting)
    }

    /// The same, not quite as usual.
    pub(crate) fn with(
        world: World,
        agent: Script,
        change: impl FnOnce(Setting) -> Setting,
    ) -> Self {
        let state = State::new();
        let mut house = change(Setting::new(world.store)).serve(agent, &state);
        house._state = Some(state);
        house
    }

    fn serve(builder: ServerBuilder) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel();
        runtime.spawn(async move {
            let listener = TcpListener::bind("127.0.0.1:0")
                .await
                .expect("a port is free");
            let address = listener.local_addr().expect("it has an address");
            let is_up = move || {
                ready.send(address).expect("the test waits");
                Ok(())
            };
            let stop = async {
                // Not told to stop but dropped: that is not a stop.
                if stopped.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            builder
                .serve_on(listener, is_up, stop)
                .await
                .expect("the server serves");
            let _ = end.send(());
        });
        let address = is_ready.recv().expect("the server comes up");
        Self {
            address,
            stop: Some(stop),
            ended,
            runtime: Some(runtime),
            _state: None,
        }
    }

    pub(crate) fn peer(&self, dialect: Dialect) -> Peer {
        Peer::new(self.address, dialect)
    }

    /// Dies on the spot: nothing is finished, nothing is said.
    pub(crate) fn die(mut self) {
        self.kill();
    }

    fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Tells the server to stop, without waiting for it.
    pub(crate) fn tell_to_stop(&mut self) {
        let stop = self.stop.take().expect("it is told once");
        stop.send(()).expect("the server is there");
    }

    /// Stops in good order.
    pub(crate) fn stop(mut self) {
        self.tell_to_stop();
        self.ended();
    }

    /// Waits until a server that was told to stop has.
    pub(crate) fn ended(self) {
        self.ended
            .recv_timeout(super::PATIENCE)
            .expect("the server ends in time");
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A router in somebody else's server, which drops what it does for a client that goes away.
#[derive(Debug)]
pub(crate) struct Mounted {
    pub(crate) address: SocketAddr,
    serving: tokio::task::JoinHandle<()>,
}

impl Mounted {
    pub(crate) async fn serve(router: axum::Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let serving = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("axum serves");
        });
        Self { address, serving }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
