//! [`HarnessClient`] in a `mio::Poll` of the caller's.

use super::harness_client::HarnessClient;

/// A program with a `mio::Poll` of its own can host the client: register it as readable, and whenever the poll says
/// so, [`pump`](HarnessClient::pump) with a timeout of zero until nothing is moved. Deadlines need a look of their own
/// now and then, by the same call.
impl mio::event::Source for HarnessClient {
    fn register(
        &mut self,
        registry: &mio::Registry,
        token: mio::Token,
        interests: mio::Interest,
    ) -> std::io::Result<()> {
        self.connection_mut().pump.register(registry, token, interests)
    }

    fn reregister(
        &mut self,
        registry: &mio::Registry,
        token: mio::Token,
        interests: mio::Interest,
    ) -> std::io::Result<()> {
        self.connection_mut().pump.reregister(registry, token, interests)
    }

    fn deregister(&mut self, registry: &mio::Registry) -> std::io::Result<()> {
        self.connection_mut().pump.deregister(registry)
    }
}
