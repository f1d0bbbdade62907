//! Listening: connections in, requests to the router, an orderly end.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use std::{future::Future, io, pin::pin, time::Duration};
use tokio::net::TcpListener;

/// After an accept failed (too many open files, say) the next is tried after this.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves connections until `stop` resolves, then lets open requests end for up to `grace`.
///
/// - `TCP_NODELAY` is on, so that small frames of a stream leave at once;
/// - a connection whose headers take longer than `header_read` is closed;
/// - a client that closes its sending side still gets its answer.
///
/// # Errors
/// None at present; a failed accept is logged and tried again.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    header_read: Duration,
    grace: Duration,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(header_read)
        .half_close(true);
    let graceful = GracefulShutdown::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let stream = match accepted {
            Ok((stream, _peer)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(grace, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("requests were still open at the end of the grace time");
    }
    Ok(())
}
