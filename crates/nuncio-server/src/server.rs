//! The server: an agent, a store and the gate, put together.

use crate::{
    agent::Agent,
    auth::Auth,
    binding::{self, CardDocument},
    engine::Engine,
    limits::Limits,
    runtime::{RetentionPolicy, Runtime},
    serve::serve,
    transport::Transport,
};
use axum::Router;
use nuncio_core::{
    AgentCard, AgentInterface, AgentSkill, ProtocolBinding, ProtocolVersion, wire::card::CardForm,
};
use nuncio_store::{MemoryStore, Store, StoreError};
use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{
    net::{TcpListener, ToSocketAddrs},
    sync::{Semaphore, watch},
};

/// An A2A server for one agent.
///
/// [`router`](Self::router) is an [`axum::Router`] to mount wherever one likes;
/// [`start`](Self::start) begins the background work that recovers lost turns and makes the
/// evented transport whole. [`ServerBuilder::serve`] does both and listens.
#[derive(Debug, Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) auth: Auth,
    pub(crate) card: CardDocument,
    pub(crate) transport: Transport,
    pub(crate) streaming: bool,
    pub(crate) retention: RetentionPolicy,
    pub(crate) idempotent_message_ids: bool,
    pub(crate) streams: Arc<Semaphore>,
    /// Whether the runtime is running.
    pub(crate) running: AtomicBool,
    /// Turns true when the server is to stop: open streams end.
    pub(crate) stopping: watch::Sender<bool>,
}

impl Inner {
    /// The transport in effect: without its runtime the evented one is as the inline one.
    pub(crate) fn transport(&self) -> Transport {
        match self.transport {
            Transport::Evented if self.running.load(Ordering::Acquire) => Transport::Evented,
            _ => Transport::Inline,
        }
    }
}

impl Server {
    /// Begins to put a server together.
    pub fn builder(agent: impl Agent) -> ServerBuilder {
        ServerBuilder::new(agent)
    }

    /// The routes: JSON-RPC at `/`, the card below `/.well-known/`.
    ///
    /// Below a path of a larger application it belongs under [`Router::nest_service`], which
    /// answers there with and without a trailing slash, as clients may send either;
    /// [`Router::nest`] answers only without.
    pub fn router(&self) -> Router {
        binding::router(Arc::clone(&self.inner))
    }

    /// Recovers the turns that an earlier run left behind and begins the background work.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn start(&self) -> Result<Runtime, StoreError> {
        Runtime::start(Arc::clone(&self.inner)).await
    }

    /// Tells open streams to end. Turns go on.
    pub fn close_streams(&self) {
        self.inner.stopping.send_replace(true);
    }

    /// Waits until no turn is running and all is stored, but no longer than the limits' grace time.
    pub async fn drained(&self) {
        let grace = self.inner.engine.limits().shutdown_grace;
        if tokio::time::timeout(grace, self.inner.engine.drained())
            .await
            .is_err()
        {
            tracing::warn!("turns were still running: the next start takes care of their tasks");
        }
    }
}

/// Puts a [`Server`] together. What is not said has a default: tasks in memory, the evented
/// transport, anonymous callers, on loopback only.
pub struct ServerBuilder {
    agent: Arc<dyn Agent>,
    store: Arc<dyn Store>,
    card: AgentCard,
    base_url: Option<String>,
    form: CardForm,
    auth: Auth,
    transport: Transport,
    streaming: bool,
    limits: Limits,
    retention: RetentionPolicy,
    idempotent_message_ids: bool,
    anonymous_network: bool,
}

impl ServerBuilder {
    fn new(agent: impl Agent) -> Self {
        Self {
            agent: Arc::new(agent),
            store: Arc::new(MemoryStore::new()),
            card: AgentCard {
                name: "agent".into(),
                description: "An agent served by nuncio".into(),
                version: "0.0.0".into(),
                default_input_modes: vec!["text/plain".into()],
                default_output_modes: vec!["text/plain".into()],
                ..AgentCard::default()
            },
            base_url: None,
            form: CardForm::Both,
            auth: Auth::Anonymous,
            transport: Transport::Evented,
            streaming: true,
            limits: Limits::default(),
            retention: RetentionPolicy::default(),
            idempotent_message_ids: false,
            anonymous_network: false,
        }
    }

    /// Names the agent on its card.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.card.name = name.into();
        self
    }

    /// What the agent's card says: name, description, skills, modes, provider. Interfaces,
    /// capabilities and security are the server's to say and are overwritten.
    #[must_use]
    pub fn card(mut self, card: AgentCard) -> Self {
        self.card = card;
        self
    }

    /// Where the server can be reached, as its card says it: from configuration, never from a
    /// request. [`serve`](Self::serve) takes the address it listens on where this is not set.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Which versions' fields the card has where a request names none.
    #[must_use]
    pub fn card_form(mut self, form: CardForm) -> Self {
        self.form = form;
        self
    }

    /// Where tasks live.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = store;
        self
    }

    /// Whom the server lets in.
    #[must_use]
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// Lets [`serve`](Self::serve) listen beyond loopback although everybody is let in.
    #[must_use]
    pub fn dangerously_serve_everybody(mut self) -> Self {
        self.anonymous_network = true;
        self
    }

    /// How much of the protocol runs.
    #[must_use]
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    /// Whether streams are offered; they are by default.
    #[must_use]
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.streaming = streaming;
        self
    }

    /// The limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long finished tasks are kept; for ever by default.
    #[must_use]
    pub fn retention(mut self, retention: RetentionPolicy) -> Self {
        self.retention = retention;
        self
    }

    /// Takes each message's id as an idempotency key. Off by default, since clients reuse ids.
    #[must_use]
    pub fn idempotent_message_ids(mut self, on: bool) -> Self {
        self.idempotent_message_ids = on;
        self
    }

    /// The server.
    #[must_use]
    pub fn build(mut self) -> Server {
        self.complete_card();
        let card = Arc::new(self.card);
        let inner = Inner {
            engine: Engine::new(
                self.store,
                self.agent,
                Arc::clone(&card),
                self.limits.clone(),
            ),
            auth: self.auth,
            card: CardDocument::new(&card, self.form),
            transport: self.transport,
            streaming: self.streaming,
            retention: self.retention,
            idempotent_message_ids: self.idempotent_message_ids,
            streams: Arc::new(Semaphore::new(self.limits.streams)),
            running: AtomicBool::new(false),
            stopping: watch::Sender::new(false),
        };
        Server {
            inner: Arc::new(inner),
        }
    }

    /// Makes the card say what runs, and nothing else.
    fn complete_card(&mut self) {
        let url = self
            .base_url
            .clone()
            .unwrap_or_else(|| "http://127.0.0.1/".into());
        let card = &mut self.card;
        card.interfaces = [ProtocolVersion::V1_0, ProtocolVersion::V0_3]
            .map(|version| AgentInterface::new(&url, ProtocolBinding::JsonRpc, version))
            .into();
        card.capabilities.streaming = Some(self.streaming);
        card.capabilities.push_notifications = Some(false);
        card.capabilities.extended_card = Some(false);
        card.capabilities.state_transition_history = Some(false);
        card.security_schemes = self.auth.schemes().into_iter().collect();
        card.security = card
            .security_schemes
            .keys()
            .map(|name| [(name.clone(), Vec::new())].into())
            .collect();
        if card.skills.is_empty() {
            card.skills.push(AgentSkill {
                id: card.name.clone(),
                name: card.name.clone(),
                description: card.description.clone(),
                tags: vec!["agent".into()],
                ..AgentSkill::default()
            });
        }
    }

    /// Listens and serves until the process is told to stop (Ctrl-C), then ends in good order.
    ///
    /// # Errors
    /// Where the address can't be listened on, or is beyond loopback while everybody is let in
    /// (see [`dangerously_serve_everybody`](Self::dangerously_serve_everybody)), or the store
    /// fails.
    pub async fn serve(self, address: impl ToSocketAddrs) -> io::Result<()> {
        let listener = TcpListener::bind(address).await?;
        let stop = async {
            // Without a handler there is no orderly end but there is one.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        self.serve_on(listener, || Ok(()), stop).await
    }

    /// The same on a listener of one's own, until `stop` resolves. `ready` is called when
    /// connections are about to be taken.
    ///
    /// # Errors
    /// See [`serve`](Self::serve); and what `ready` gives.
    pub async fn serve_on(
        mut self,
        listener: TcpListener,
        ready: impl FnOnce() -> io::Result<()>,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let address = listener.local_addr()?;
        self.check_exposure(address)?;
        if self.base_url.is_none() {
            self.base_url = Some(format!("http://{address}/"));
        }
        let limits = self.limits.clone();
        let server = self.build();
        let runtime = server.start().await.map_err(io::Error::other)?;
        ready()?;
        let closing = server.clone();
        let stop = async move {
            stop.await;
            closing.close_streams();
        };
        serve(
            listener,
            server.router(),
            limits.header_read,
            limits.shutdown_grace,
            stop,
        )
        .await?;
        server.drained().await;
        drop(runtime);
        Ok(())
    }

    /// Refuses to let everybody in from everywhere.
    fn check_exposure(&self, address: SocketAddr) -> io::Result<()> {
        if address.ip().is_loopback() || !self.auth.is_anonymous() || self.anonymous_network {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{address} can be reached from other machines and nobody would be asked who they \
                 are: set up authentication, or listen on 127.0.0.1"
            ),
        ))
    }
}

impl std::fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("card", &self.card.name)
            .field("auth", &self.auth)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}
