//! The server of one listening socket: accepts clients, and disconnects them when it stops.

use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::connection::Connection;
use super::listener::Listener;
use super::offer::Offer;
use super::socket::Socket;
use super::threads::ThreadBudget;
use crate::service::Export;

/// The maximum number of clients at a time. Further clients are disconnected.
pub const CLIENTS_MAX: usize = 512;

/// The pause after the system could not accept a client, for example for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The time for clients to receive the last replies when the server stops.
const REPLIES_TIMEOUT: Duration = Duration::from_secs(1);

/// A running NBD server. It stops when it is dropped.
#[derive(Debug)]
pub struct NbdServer {
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// The state that the threads share.
#[derive(Debug)]
struct Shared {
    listener: Listener,
    offer: Arc<Offer>,
    stopped: AtomicBool,
    clients: Mutex<Clients>,
    /// Notified when a client has left.
    left: Condvar,
    budget: Arc<ThreadBudget>,
}

#[derive(Debug, Default)]
struct Clients {
    /// The number of the next client.
    next: u64,
    connected: Vec<(u64, Arc<Socket>)>,
}

impl NbdServer {
    /// Serves exports, the first of which is the default one, to the clients of a socket. Up to
    /// `outstanding` requests of each client are carried out at a time.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub fn start(
        exports: Vec<Export>,
        listener: Listener,
        outstanding: usize,
    ) -> io::Result<NbdServer> {
        let shared = Arc::new(Shared {
            listener,
            offer: Arc::new(Offer::new(exports)),
            stopped: AtomicBool::new(false),
            clients: Mutex::default(),
            left: Condvar::new(),
            budget: Arc::new(ThreadBudget::new(outstanding)),
        });
        let accepting = Arc::clone(&shared);
        let acceptor = thread::Builder::new()
            .name("nbd".to_owned())
            .spawn(move || accepting.accept())?;
        Ok(NbdServer {
            shared,
            acceptor: Some(acceptor),
        })
    }

    /// Returns the TCP port; `None` for a Unix socket.
    pub fn port(&self) -> Option<u16> {
        self.shared.listener.port()
    }

    /// Accepts no more clients and no more requests, and waits until the outstanding ones are
    /// complete.
    pub fn stop(&mut self) {
        let Some(acceptor) = self.acceptor.take() else {
            return;
        };
        self.shared.stopped.store(true, Ordering::Relaxed);
        self.shared.listener.close();
        // The thread does not panic; only its end matters.
        let _ = acceptor.join();
        let mut clients = self.shared.clients.lock();
        for (_, socket) in &clients.connected {
            socket.shutdown(Shutdown::Read);
        }
        self.shared
            .left
            .wait_while_for(&mut clients, is_connected, REPLIES_TIMEOUT);
        for (_, socket) in &clients.connected {
            socket.shutdown(Shutdown::Both);
        }
        self.shared.left.wait_while(&mut clients, is_connected);
    }
}

fn is_connected(clients: &mut Clients) -> bool {
    !clients.connected.is_empty()
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// Accepts clients until the server stops.
    fn accept(self: &Arc<Self>) {
        while !self.stopped.load(Ordering::Relaxed) {
            match self.listener.accept() {
                Ok(socket) => self.admit(socket),
                Err(_) if self.stopped.load(Ordering::Relaxed) => {}
                Err(error) => {
                    tracing::warn!("a client cannot be accepted: {error}");
                    thread::sleep(ACCEPT_PAUSE);
                }
            }
        }
    }

    /// Starts a client's first thread.
    fn admit(self: &Arc<Self>, socket: Socket) {
        let socket = Arc::new(socket);
        let number = {
            let mut clients = self.clients.lock();
            if clients.connected.len() >= CLIENTS_MAX {
                tracing::warn!("a client is refused: {CLIENTS_MAX} are connected");
                return;
            }
            let number = clients.next;
            clients.next += 1;
            clients.connected.push((number, Arc::clone(&socket)));
            number
        };
        let presence = Presence {
            shared: Arc::clone(self),
            number,
        };
        let started = self.budget.spawn(1, move || {
            let Shared { offer, budget, .. } = &*presence.shared;
            Connection::serve(offer, budget, &socket);
        });
        if let Err(error) = started {
            tracing::warn!("a client is refused: {error}");
        }
    }
}

/// A client's entry in the list, which is removed when its first thread has ended.
struct Presence {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut clients = self.shared.clients.lock();
        clients
            .connected
            .retain(|(number, _)| *number != self.number);
        self.shared.left.notify_all();
    }
}
